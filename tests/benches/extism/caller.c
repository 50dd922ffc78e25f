/*
 * Calls a plugin through Extism's C interface and says how long each call took. It knows no clock but its own loop's,
 * and no language stands between that loop and the library.
 *
 * Arguments: the plugin's manifest, a function of it, and two files: what the function is given, and what it must answer.
 * Then, for each line "loaded N", "fresh N" or "warm N" on standard input, it makes N calls and writes so many lines, each
 * the nanoseconds of one. A loaded call makes a plugin from its manifest, whose code the library finds in its cache; a
 * fresh call makes it from the compiled one; both free it. Warm calls are made of one plugin that stays. All end with a
 * copy of the answer in the hands of the caller.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct ExtismCompiledPlugin ExtismCompiledPlugin;
typedef struct ExtismPlugin ExtismPlugin;

/* Of extism.h, which does not come with the library. */
ExtismCompiledPlugin *extism_compiled_plugin_new(const uint8_t *wasm, uint64_t wasm_size, const void **functions,
                                                 uint64_t n_functions, bool with_wasi, char **error);
ExtismPlugin *extism_plugin_new(const uint8_t *wasm, uint64_t wasm_size, const void **functions, uint64_t n_functions,
                                bool with_wasi, char **error);
ExtismPlugin *extism_plugin_new_from_compiled(const ExtismCompiledPlugin *compiled, char **error);
int32_t extism_plugin_call(ExtismPlugin *plugin, const char *name, const uint8_t *data, uint64_t data_len);
const char *extism_plugin_error(ExtismPlugin *plugin);
uint64_t extism_plugin_output_length(ExtismPlugin *plugin);
const uint8_t *extism_plugin_output_data(ExtismPlugin *plugin);
void extism_plugin_free(ExtismPlugin *plugin);

typedef struct {
    uint8_t *bytes;
    uint64_t length;
} Bytes;

static void end(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why ? why : "no reason is given");
    exit(1);
}

static Bytes read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) end(path, "it cannot be read");
    long length = ftell(file);
    rewind(file);
    Bytes read = {malloc((size_t)length + 1), (uint64_t)length};
    if (!read.bytes || fread(read.bytes, 1, read.length, file) != read.length) end(path, "it cannot be read");
    fclose(file);
    return read;
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static ExtismPlugin *make(const ExtismCompiledPlugin *compiled) {
    char *error = NULL;
    ExtismPlugin *plugin = extism_plugin_new_from_compiled(compiled, &error);
    if (!plugin) end("the plugin cannot be made", error);
    return plugin;
}

static ExtismPlugin *load(Bytes manifest) {
    char *error = NULL;
    ExtismPlugin *plugin = extism_plugin_new(manifest.bytes, manifest.length, NULL, 0, false, &error);
    if (!plugin) end("the plugin cannot be loaded", error);
    return plugin;
}

/* Calls the function; the answer is copied to `answer`, which has room for `room` bytes. Returns its length. */
static uint64_t call(ExtismPlugin *plugin, const char *name, Bytes input, uint8_t *answer, uint64_t room) {
    if (extism_plugin_call(plugin, name, input.bytes, input.length) != 0)
        end("the call failed", extism_plugin_error(plugin));
    uint64_t length = extism_plugin_output_length(plugin);
    memcpy(answer, extism_plugin_output_data(plugin), length < room ? length : room);
    return length;
}

int main(int count, char **arguments) {
    if (count != 5) end(arguments[0], "it takes a manifest, a function, an input and an answer");
    Bytes manifest = read_file(arguments[1]);
    const char *name = arguments[2];
    Bytes input = read_file(arguments[3]), expected = read_file(arguments[4]);
    uint8_t *answer = malloc(expected.length + 1);
    char *error = NULL;
    ExtismCompiledPlugin *compiled =
        extism_compiled_plugin_new(manifest.bytes, manifest.length, NULL, 0, false, &error);
    if (!compiled || !answer) end("the plugin cannot be compiled", error);
    ExtismPlugin *kept = make(compiled);

    char how[8];
    unsigned calls;
    while (scanf("%7s %u", how, &calls) == 2) {
        bool is_loaded = strcmp(how, "loaded") == 0, is_warm = strcmp(how, "warm") == 0;
        uint64_t *times = malloc((calls + 1) * sizeof *times);
        if (!times) end("the times cannot be kept", "there is no memory");
        for (unsigned at = 0; at < calls; at++) {
            memset(answer, 0, expected.length);
            uint64_t started = now_ns();
            ExtismPlugin *plugin = is_warm ? kept : is_loaded ? load(manifest) : make(compiled);
            uint64_t length = call(plugin, name, input, answer, expected.length);
            if (!is_warm) extism_plugin_free(plugin);
            times[at] = now_ns() - started;
            if (length != expected.length || memcmp(answer, expected.bytes, length) != 0)
                end("the plugin answered", "something else than expected");
        }
        for (unsigned at = 0; at < calls; at++) printf("%llu\n", (unsigned long long)times[at]);
        fflush(stdout);
        free(times);
    }
    extism_plugin_free(kept);
    return 0;
}
