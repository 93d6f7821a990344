ergotune_extension(temperature VERBS temperature COLD USES report analysis tune search evaluate store measure kernel device problem
                   space power base)
