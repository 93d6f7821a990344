ergotune_extension(govern VERBS govern COLD USES measure power base)
