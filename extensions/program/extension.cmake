ergotune_extension(program VERBS program supervise REGISTER COLD USES api report model tune search evaluate store measure kernel device problem space power base)
