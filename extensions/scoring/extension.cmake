ergotune_extension(scoring VERBS score USES search evaluate store measure problem space base)
