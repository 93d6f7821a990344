# cmake -DNAME=x -DINPUT=file -DOUTPUT=file.c -P embed_file.cmake
file(READ ${INPUT} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "extern const char ergotune_embedded_${NAME}[];\nextern const unsigned long ergotune_embedded_${NAME}_size;\n"
  "const char ergotune_embedded_${NAME}[] = {${bytes}0};\nconst unsigned long ergotune_embedded_${NAME}_size = ${size};\n")
