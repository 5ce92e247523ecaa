# cmake -DNM=<nm> -DLIBRARY=<libascendcl.so> -DNAMES=<acl-functions.tsv> -DREFUSED=<refused.def> -DOUTPUT=<api-table.md>
#       -P api_table.cmake
#
# Writes the table of the vendor's functions and what the built library makes of each: "supported" when it exports the symbol,
# "refused" when refused.def lists it, "absent" when it has no such symbol.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " [TW] [A-Za-z_0-9]+" exported "${symbols}")
list(TRANSFORM exported REPLACE "^ [TW] " "")

# Functions of C++ are inline: they exist in headers only.
file(GLOB headers ${CMAKE_CURRENT_LIST_DIR}/../include/ge/*.h ${CMAKE_CURRENT_LIST_DIR}/../include/parser/*.h)
foreach(header ${headers})
  file(STRINGS ${header} lines REGEX "^inline .* aclgrph")
  list(TRANSFORM lines REPLACE ".* (aclgrph[A-Za-z]+)[(].*" "\\1")
  list(APPEND exported ${lines})
endforeach()

file(READ ${REFUSED} text)
string(REGEX MATCHALL "\nDP_REFUSED_CODE\\([A-Za-z0-9_]+" refused "${text}")
string(REGEX MATCHALL "\nDP_REFUSED_VALUE\\([^,]+, [A-Za-z0-9_]+" values "${text}")
list(APPEND refused ${values})
list(TRANSFORM refused REPLACE "^\n.*[(, ]" "")
foreach(name ${refused})
  if(NOT name IN_LIST exported)
    message(FATAL_ERROR "${REFUSED} lists ${name}, but ${LIBRARY} does not export it")
  endif()
endforeach()

file(STRINGS ${NAMES} rows)
list(POP_FRONT rows)
set(supported_count 0)
set(refused_count 0)
set(absent_count 0)
set(last_header "")
set(body "")
foreach(row ${rows})
  if(NOT row MATCHES "^([^\t]+)\t([^\t]+)\t([0-9]+)$")
    message(FATAL_ERROR "${NAMES}: not name, header, clients: ${row}")
  endif()
  set(name ${CMAKE_MATCH_1})
  set(header ${CMAKE_MATCH_2})
  set(clients ${CMAKE_MATCH_3})
  if(NOT name IN_LIST exported)
    set(status absent)
  elseif(name IN_LIST refused)
    set(status refused)
  else()
    set(status supported)
  endif()
  math(EXPR ${status}_count "${${status}_count} + 1")
  if(NOT header STREQUAL last_header)
    string(APPEND body "\n## ${header}\n\n| function | clients | status |\n|---|---|---|\n")
    set(last_header ${header})
  endif()
  string(APPEND body "| ${name} | ${clients} | ${status} |\n")
endforeach()

list(LENGTH rows total)
file(WRITE ${OUTPUT}
"# Supported functions

Made from the built library; do not edit. Of the ${total} functions that are known by name, ${supported_count} are supported,
${refused_count} are refused (they return a \"not supported\" code and say why, see aclGetRecentErrMsg) and ${absent_count} are
absent (a program that uses them does not link). \"clients\" says how many of 11 public projects use a function.
${body}")
message(STATUS "${OUTPUT}: ${supported_count} supported, ${refused_count} refused, ${absent_count} absent")
