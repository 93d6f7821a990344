ergotune_extension(scoring VERBS score USES search strategies evaluate store measure problem space base)
