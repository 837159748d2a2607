# find_package(dml_tile): the target dml_tile::capture has the folder of <dml_tile/capture.h> and
# <dml_tile/capturing_device.h>, which include the application's own DirectML.h. `dml-tile cmake-dir` prints this folder.
if(NOT TARGET dml_tile::capture)
    get_filename_component(dml_tile_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../include" ABSOLUTE)
    add_library(dml_tile::capture INTERFACE IMPORTED)
    set_target_properties(
        dml_tile::capture PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${dml_tile_INCLUDE_DIR}"
        INTERFACE_COMPILE_FEATURES cxx_std_11)
endif()
