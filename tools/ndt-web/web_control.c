#include "web_control.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "ndt/clock.h"
#include "web_json.h"

static const double PATIENCE_US = 10e6;
static const char TOKEN_CHARACTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-";

/* ---- requests ---- */

struct waiting {
    uint64_t id; /* 0: free */
    int is_sent;
    double end_us;
    struct ndt_request_message request;
    struct web_asker asker;
};

struct web_control {
    pthread_mutex_t lock;
    uint64_t last_id;
    struct waiting waiting[WEB_CONTROL_WAITING];
};

struct web_control *web_control_open(void)
{
    struct web_control *control = calloc(1, sizeof(*control));
    if (control) {
        pthread_mutex_init(&control->lock, NULL);
        control->last_id = WEB_CONTROL_FIRST_ID;
    }
    return control;
}

void web_control_close(struct web_control *control)
{
    if (control)
        pthread_mutex_destroy(&control->lock);
    free(control);
}

enum ndt_status web_control_add(struct web_control *control, const struct ndt_request_message *request,
                                const struct web_asker *asker, struct ndt_error *err)
{
    struct ndt_buffer frame;
    ndt_buffer_init(&frame);
    enum ndt_status status = ndt_request_encode(&frame, request, err); /* checks its values */
    ndt_buffer_free(&frame);
    if (status != NDT_OK)
        return status;
    status = ndt_fail(err, NDT_ERR_LIMIT, "%d requests wait for the daemon already", WEB_CONTROL_WAITING);
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < WEB_CONTROL_WAITING; i++) {
        struct waiting *place = &control->waiting[i];
        if (place->id)
            continue;
        *place = (struct waiting){++control->last_id, 0, ndt_clock_us() + PATIENCE_US, *request, *asker};
        status = NDT_OK;
        break;
    }
    pthread_mutex_unlock(&control->lock);
    return status;
}

int web_control_take(struct web_control *control, struct ndt_buffer *frame)
{
    int found = 0;
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < WEB_CONTROL_WAITING && !found; i++) {
        struct waiting *place = &control->waiting[i];
        if (!place->id || place->is_sent)
            continue;
        place->is_sent = 1;
        place->request.id = place->id;
        found = ndt_request_encode(frame, &place->request, NULL) == NDT_OK; /* no memory: expires */
    }
    pthread_mutex_unlock(&control->lock);
    return found;
}

/* Takes out the request with this id, or for id 0 one that ends before `now_us`. */
static int take_out(struct web_control *control, uint64_t id, double now_us, struct web_asker *asker)
{
    int found = 0;
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < WEB_CONTROL_WAITING && !found; i++) {
        struct waiting *place = &control->waiting[i];
        found = place->id && (id ? place->id == id : place->end_us < now_us);
        if (found) {
            *asker = place->asker;
            place->id = 0;
        }
    }
    pthread_mutex_unlock(&control->lock);
    return found;
}

int web_control_answer(struct web_control *control, uint64_t id, const uint8_t *data, size_t size)
{
    struct web_asker asker;
    struct ndt_error err = {""};
    if (id == 0 || !take_out(control, id, 0, &asker))
        return 0;
    struct web_blob *json = web_json_message(data, size, &err);
    asker.done(asker.user, json, err.text);
    return 1;
}

static int any_waits(struct web_control *control)
{
    int found = 0;
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < WEB_CONTROL_WAITING; i++)
        found |= control->waiting[i].id != 0;
    pthread_mutex_unlock(&control->lock);
    return found;
}

int web_control_expire(struct web_control *control)
{
    struct web_asker asker;
    while (take_out(control, 0, ndt_clock_us(), &asker))
        asker.done(asker.user, NULL, "the daemon does not answer within 10 s");
    return any_waits(control);
}

void web_control_fail(struct web_control *control, const char *why)
{
    struct web_asker asker;
    while (take_out(control, 0, 1e300, &asker))
        asker.done(asker.user, NULL, why);
}

int web_control_is_allowed(enum ndt_operation op)
{
    switch (op) {
    case NDT_OP_INITIAL_POSE:
    case NDT_OP_LOCALIZE:
    case NDT_OP_SEARCH:
    case NDT_OP_CANCEL_SEARCH:
    case NDT_OP_START:
    case NDT_OP_STOP:
    case NDT_OP_RELOAD:
    case NDT_OP_START_RECORDING:
    case NDT_OP_STOP_RECORDING:
        return 1;
    default:
        return 0;
    }
}

/* ---- token ---- */

enum ndt_status web_token_read(const char *path, char token[WEB_TOKEN_MAX + 1], struct ndt_error *err)
{
    char text[WEB_TOKEN_MAX + 3];
    struct stat about;
    FILE *file = fopen(path, "re");
    if (!file)
        return ndt_fail(err, NDT_ERR_IO, "--token-file %s: %s", path, strerror(errno));
    const int is_private = fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) && !(about.st_mode & 027);
    const size_t size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[size] = '\0';
    const size_t length = strspn(text, TOKEN_CHARACTERS);
    if (!is_private)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--token-file %s: not a file, or others may read it (chmod 600)",
                        path);
    if (length < WEB_TOKEN_MIN || length > WEB_TOKEN_MAX || strspn(text + length, "\n") != size - length)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "--token-file %s: expected one line of %d to %d letters, digits and . _ ~ + / = -", path,
                        WEB_TOKEN_MIN, WEB_TOKEN_MAX);
    memcpy(token, text, length);
    token[length] = '\0';
    return NDT_OK;
}

enum ndt_status web_token_make(char token[WEB_TOKEN_MAX + 1], struct ndt_error *err)
{
    enum { CHARACTERS = 32 };
    uint8_t random[CHARACTERS];
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return ndt_fail(err, NDT_ERR_IO, "no random numbers for a token: %s", strerror(errno));
    for (size_t i = 0; i < CHARACTERS; i++)
        token[i] = TOKEN_CHARACTERS[random[i] % 64]; /* 6 bits each */
    token[CHARACTERS] = '\0';
    return NDT_OK;
}

int web_token_is_right(const char *header, const char *token)
{
    const size_t length = strlen(token);
    if (!header || strncasecmp(header, "Bearer ", 7) != 0 || strlen(header + 7) != length)
        return 0;
    unsigned difference = 0;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned)(header[7 + i] ^ token[i]);
    return difference == 0;
}
