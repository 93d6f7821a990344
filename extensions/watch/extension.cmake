ergotune_extension(watch VERBS watch COLD USES report analysis search store measure kernel device problem space base LIBRARIES libevent)
