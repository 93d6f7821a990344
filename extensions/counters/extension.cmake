ergotune_extension(counters VERBS counters REGISTER COLD USES measure kernel device problem space power base)
