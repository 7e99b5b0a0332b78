/** @file
 * @brief ndt-ctl map and tile: exchange the map or parts of it, and wait until it is ready. */
#include "ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndt/clock.h"
#include "ndtd/progress_line.h"
#include "reply_view.h"

static int unload, no_wait;
static int64_t timeout_ns = 600000000000;
static const int64_t REPLY_NS = 5000000000;

/* The daemon has a working directory of its own: where it is on this machine, a relative path becomes absolute. */
static enum ndt_status set_path(struct ndt_request_message *request, const struct control_client *client,
                                const char *path, struct ndt_error *err)
{
    char here[sizeof(request->path)] = "";
    const int is_local = strncmp(control_address(client), "ipc://", 6) == 0;
    if (is_local && path[0] != '/' && !getcwd(here, sizeof(here)))
        return ndt_fail(err, NDT_ERR_IO, "the working directory is not known; give an absolute path");
    const int used = snprintf(request->path, sizeof(request->path), "%s%s%s", here, *here ? "/" : "", path);
    return used >= 0 && (size_t)used < sizeof(request->path)
               ? NDT_OK
               : ndt_fail(err, NDT_ERR_ARGUMENT, "the path has more than %zu bytes", sizeof(request->path) - 1);
}

static enum ndt_status ask_status(struct control_client *client, struct reply_view **view, struct ndt_error *err)
{
    size_t size;
    const struct ndt_request_message request = {.op = NDT_OP_STATUS};
    const enum ndt_status status = control_ask(client, &request, err);
    if (status != NDT_OK)
        return status;
    const uint8_t *data = control_reply(client, &size);
    return reply_view_read(view, data, size, err);
}

/* Shows the progress; with several files the bytes are those of the current one. */
static void show_progress(struct ndtd_progress_line *line, const struct reply_view *view)
{
    const double all_files = reply_view_number(view, "map.loading.all_files");
    if (all_files > 1) {
        line->unit = "files";
        ndtd_progress_line_show(line, (uint64_t)reply_view_number(view, "map.loading.files"), (uint64_t)all_files);
        return;
    }
    line->unit = NULL;
    ndtd_progress_line_show(line, (uint64_t)reply_view_number(view, "map.loading.bytes"),
                            (uint64_t)reply_view_number(view, "map.loading.all_bytes"));
}

static enum ndt_status tell(const struct reply_view *view, struct ndt_error *err)
{
    char text[400];
    if (reply_view_number(view, "map.failed") != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s", reply_view_text(view, "map.error", text, sizeof(text)));
    if (!ctl.json && reply_view_number(view, "map.map_id") == 0)
        puts("no map");
    else if (!ctl.json)
        printf("%s: %.0f points, %.0f of %.0f tiles, %.0f ms\n",
               reply_view_text(view, "map.path", text, sizeof(text)), reply_view_number(view, "map.points"),
               reply_view_number(view, "map.tiles_loaded"), reply_view_number(view, "map.tiles_known"),
               reply_view_number(view, "map.last_load_ms"));
    return NDT_OK;
}

static enum ndt_status wait_for_map(struct control_client *client, struct ndt_error *err)
{
    const double end_us = ndt_clock_us() + (double)timeout_ns * 1e-3;
    struct ndtd_progress_line line;
    struct reply_view *view = NULL;
    enum ndt_status status;
    ndtd_progress_line_begin(&line, "loading the map", NULL);
    while ((status = ask_status(client, &view, err)) == NDT_OK && reply_view_number(view, "map.busy") != 0) {
        const int is_late = ndt_clock_us() > end_us;
        if (is_late || tool_interrupted()) {
            status = ndt_fail(err, NDT_ERR_IO, "%s: the daemon goes on loading",
                              is_late ? "the map is not ready in time" : "interrupted");
            break;
        }
        show_progress(&line, view);
        reply_view_free(view);
        view = NULL;
        ctl_nap();
    }
    ndtd_progress_line_end(&line);
    if (status == NDT_OK)
        status = tell(view, err);
    if (status == NDT_OK && ctl.json)
        status = control_print_json(client, stdout, err);
    reply_view_free(view);
    return status;
}

static enum ndt_status change(enum ndt_operation op, const char *path, struct ndt_error *err)
{
    struct ndt_request_message request = {.op = op};
    struct control_client *client = NULL;
    ctl.timeout_ns = timeout_ns < REPLY_NS ? timeout_ns : REPLY_NS; /* limit of each reply */
    enum ndt_status status = ctl_open(&client, err);
    if (status == NDT_OK && path)
        status = set_path(&request, client, path, err);
    if (status == NDT_OK)
        status = control_ask(client, &request, err);
    if (status == NDT_OK && no_wait)
        status = ctl_print(client, err);
    else if (status == NDT_OK)
        status = wait_for_map(client, err);
    control_close(client);
    return status;
}

static enum ndt_status map(struct ndt_error *err)
{
    if (unload != (ctl.operands.count == 0))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "map needs a FILE, or --unload");
    return unload ? change(NDT_OP_UNLOAD_MAP, NULL, err) : change(NDT_OP_LOAD_MAP, ctl.operands.words[0], err);
}

static enum ndt_status tile(struct ndt_error *err)
{
    const char *what = ctl.operands.words[0];
    const int is_load = strcmp(what, "load") == 0;
    if (!is_load && strcmp(what, "unload") != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "tile '%.60s': it is load FILE or unload FILE", what);
    return change(is_load ? NDT_OP_LOAD_TILE : NDT_OP_UNLOAD_TILE, ctl.operands.words[1], err);
}

/* clang-format off */
#define WAIT_OPTIONS                                                                                               \
    {"no-wait", NULL, TOOL_FLAG, &no_wait, .help = "do not wait until the map is ready"},                          \
    {"json", NULL, TOOL_FLAG, &ctl.json, .help = "print the last reply (that of status) as one JSON object"},      \
    {"timeout", "S", TOOL_SECONDS, &timeout_ns, 1e-3, 2e6, .help = "wait S seconds for the map"},                  \
    LIVE_CONTROL_OPTION(ctl.control),                                                                              \
    LIVE_KEY_OPTIONS(ctl.keys)
/* clang-format on */
static const struct tool_option map_options[] = {
    {"unload", NULL, TOOL_FLAG, &unload, .help = "remove the map: scans are answered as no_map"}, WAIT_OPTIONS};
static const struct tool_option tile_options[] = {WAIT_OPTIONS};

const struct tool_command ctl_map_command = {
    .name = "map",
    .summary = "has the daemon exchange its map, and waits until it is ready",
    .details =
        "FILE is a map or a folder of tiles on the machine of the daemon; over an ipc socket a relative path "
        "begins at the working directory of ndt-ctl. The map before stays in use until the new one is "
        "ready, and when it cannot be loaded (exit status 3).",
    TOOL_OPERANDS("FILE", 0, 1, &ctl.operands),
    TOOL_OPTIONS(map_options),
    .run = map};
const struct tool_command ctl_tile_command = {
    .name = "tile",
    .summary = "has the daemon add a tile to its map or remove one: tile load FILE, tile unload FILE",
    .details = "FILE is a cloud on the machine of the daemon, as for map.",
    TOOL_OPERANDS("load|unload FILE", 2, 2, &ctl.operands),
    TOOL_OPTIONS(tile_options),
    .run = tile};
