ergotune_extension(cluster VERBS agent REGISTER COLD USES tune search evaluate store measure kernel device problem space power base)
set_property(SOURCE ${PROJECT_SOURCE_DIR}/extensions/cluster/target_nodes.cpp PROPERTY COMPILE_DEFINITIONS ERGOTUNE_VERSION="${PROJECT_VERSION}")
