/*
 * Options: structs of any size and content, read by every call that takes one. A call that refuses says why and leaves
 * nothing; one that accepts makes something whose limits hold.
 */
#include "input.h"

#include <stdbool.h>

#include <evlock/evlock.h>

#include "../unit/counted.h"
#include "loop.h"

enum { LONGEST = 600 };

/* The struct with zeros behind it, as many as it may claim to have: a longer one is a newer program's. */
static const void *with_room(const void *options, size_t size) {
    static _Alignas(int64_t) unsigned char room[4096];

    memset(room, 0, sizeof(room));
    memcpy(room, options, size);
    return room;
}

/* A text that may be NULL, empty, or longer than any limit. */
static const char *take_text(struct input *input, char text[LONGEST + 1]) {
    size_t len = take_byte(input);
    const uint8_t *bytes;

    if (len == 0)
        return NULL;
    if (len > 200) {
        len = 500 + (len - 200); /* about the greatest length of a name */
        memset(text, 'x', len);
    } else {
        len--;
        bytes = take_bytes(input, &len);
        memcpy(text, bytes, len);
    }
    text[len] = '\0';
    return text;
}

/* The true size, or an older or newer header's, or none at all. */
static size_t take_size(struct input *input, size_t size) {
    static const size_t sizes[] = {0, 7, 8, 16, 24, 4096, 4097, (size_t)-1};
    uint8_t which = take_byte(input);

    if (which < 192)
        return size;
    return which < 224 ? sizes[which % 8] : which - 224 < (int)size ? which - 224u : size;
}

/* What a bool is in a struct of another language. */
static void take_bool(struct input *input, bool *choice) {
    uint8_t byte = take_byte(input);

    memcpy(choice, &byte, 1);
}

static void take_client_options(struct input *input, evlock_client_options *options, char texts[2][LONGEST + 1]) {
    int64_t *numbers[] = {
        &options->connect_timeout_ms, &options->command_timeout_ms, &options->backoff_min_ms,
        &options->backoff_max_ms,     &options->max_inflight,       &options->max_ttl_ms,
    };
    uint8_t set = take_byte(input);

    *options = (evlock_client_options){.size = sizeof(evlock_client_options)};
    for (int i = 0; i < 6; i++)
        if (set & 1 << i)
            *numbers[i] = take_number(input);
    if (set & 64)
        take_bool(input, &options->durable);
    if (set & 128)
        options->log_level = (enum evlock_log_level)take_below(input, 7);
    options->user = take_text(input, texts[0]);
    options->password = take_text(input, texts[1]);
    options->size = take_size(input, sizeof(*options));
}

/* What says who the client is, and whom it trusts. There are no such files. */
static void take_credentials(struct input *input, evlock_client_options *options, char texts[6][LONGEST + 1]) {
    options->connection_name = take_text(input, texts[0]);
    options->tls_ca = take_text(input, texts[1]);
    options->tls_cert = take_text(input, texts[2]);
    options->tls_key = take_text(input, texts[3]);
    options->tls_name = take_text(input, texts[4]);
    options->password_file = take_text(input, texts[5]);
}

static void take_options(struct input *input, evlock_options *options, char texts[3][LONGEST + 1]) {
    int64_t *numbers[] = {
        &options->ttl_ms,       &options->retry_delay_ms,     &options->retry_jitter,
        &options->max_attempts, &options->max_wait_ms,        &options->renewal_interval_ms,
        &options->max_hold_ms,  &options->at_risk_percent,    &options->node_timeout_ms,
        &options->min_replicas, &options->replica_timeout_ms, &options->lost_lead_ms,
    };
    unsigned set = take_byte(input);

    set |= (unsigned)take_byte(input) << 8;
    *options = (evlock_options){.size = sizeof(evlock_options)};
    for (int i = 0; i < 12; i++)
        if (set & 1U << i)
            *numbers[i] = take_number(input);
    if (set & 1U << 12)
        take_bool(input, &options->auto_renewal);
    if (set & 1U << 13)
        take_bool(input, &options->fence), take_bool(input, &options->fail_when_away);
    if (set & 1U << 14)
        options->wait = (enum evlock_wait)take_below(input, 4);
    if (set & 1U << 15)
        options->reserved = take_byte(input);
    options->prefix = take_text(input, texts[0]);
    options->label = take_text(input, texts[1]);
    options->holder = take_text(input, texts[2]);
    options->size = take_size(input, sizeof(*options));
}

/* What a lock that takes turns needs; an older program's struct says nothing of turns. */
static void check_queue(const evlock_options *options, const evlock_client *client) {
    evlock_node_info second;

    if (options->size != sizeof(*options))
        return;
    if (options->wait == EVLOCK_WAIT_QUEUE)
        check(evlock_client_node(client, 1, &second, sizeof(second)) == EVLOCK_EINVAL &&
              options->ttl_ms != EVLOCK_NO_EXPIRY);
    check(!options->holder || (options->holder[0] && strlen(options->holder) <= 91));
}

static void check_known(int status) {
    check(status <= 0);
    check(strcmp(evlock_strerror(status), evlock_strerror(12345)) != 0);
}

/* What a call refuses it explains. */
static void check_status(int status) {
    check_known(status);
    check(status == EVLOCK_OK || evlock_last_error()[0]);
}

static void on_end(evlock *lock, int status, void *told) {
    (void)lock;
    check_known(status);
    ++*(int *)told;
}

static void on_run(int status, bool ran, void *told) {
    check_known(status);
    check(!ran);
    ++*(int *)told;
}

static int body(evlock *lock, void *arg) {
    (void)arg;
    check(!lock); /* there is no server that could have granted it */
    return EVLOCK_OK;
}

static void on_log(enum evlock_log_level level, const char *line, void *arg) {
    (void)level, (void)arg;
    for (; *line; line++)
        check((unsigned char)*line >= ' ');
}

/* Acquires by options of their own; how many callbacks will come. */
static int use(struct input *input, evlock *lock, evlock_client *client, int *told) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    int64_t *numbers[] = {&options.max_attempts, &options.max_wait_ms, &options.retry_delay_ms};
    char token[LONGEST + 1], texts[3][LONGEST + 1];
    uint8_t set = take_byte(input);
    evlock_options run_options;
    int status, expected = 0;

    for (int i = 0; i < 3; i++)
        if (set & 1 << i)
            *numbers[i] = take_number(input);
    options.fence = set & 32 ? (enum evlock_override)take_below(input, 4) : EVLOCK_INHERIT;
    options.fail_when_away = set & 64 ? (enum evlock_override)take_below(input, 4) : EVLOCK_INHERIT;
    options.token = take_text(input, token);
    options.token_len = set & 8 ? EVLOCK_CSTRING : take_byte(input);
    if (options.token && options.token_len != EVLOCK_CSTRING && options.token_len > LONGEST)
        options.token_len = LONGEST;
    options.size = take_size(input, sizeof(options));
    status = evlock_acquire(lock, set & 16 ? NULL : with_room(&options, sizeof(options)), on_end, told);
    check_status(status);
    expected += status == EVLOCK_OK;
    check(!evlock_is_held(lock) && evlock_remaining_ms(lock) == 0 && evlock_fence(lock) == 0);
    take_options(input, &run_options, texts);
    status = evlock_run(NULL, client, "a run", EVLOCK_CSTRING, with_room(&run_options, sizeof(run_options)), body,
                        on_run, told);
    check_status(status);
    return expected + (status == EVLOCK_OK);
}

static void make_lock(struct input *input, evlock_client *client, int *told, int *expected) {
    char texts[3][LONGEST + 1], name[LONGEST + 1];
    evlock_options options;
    evlock *lock = NULL;
    const char *text;
    size_t len, name_len;
    bool given;
    int status;

    take_options(input, &options, texts);
    text = take_text(input, name);
    len = text ? strlen(text) : 0;
    given = take_below(input, 8);
    status = evlock_new(&lock, client, text, len, given ? with_room(&options, sizeof(options)) : NULL);
    check_status(status);
    check((status == EVLOCK_OK) == (lock != NULL));
    if (!lock)
        return;
    if (given)
        check_queue(&options, client);
    check(len > 0 && len <= 512);
    check(memcmp(evlock_name(lock, &name_len), text, len) == 0 && name_len == len);
    *expected += use(input, lock, client, told);
    evlock_free(lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const urls[] = {
        "unix:///nowhere/a", "quorum:unix:///nowhere/a unix:///nowhere/b unix:///nowhere/c", "rediss://127.0.0.1:7000"};
    struct input input = {data, data + size};
    char texts[2][LONGEST + 1], credentials[6][LONGEST + 1];
    uint8_t which;
    evlock_client_options options;
    evlock_client *client = NULL;
    evlock_loop adapter;
    struct loop loop;
    int told = 0, expected = 0, status;

    counted_begin(NULL);
    loop_begin(&loop);
    take_client_options(&input, &options, texts);
    options.on_log = on_log;
    adapter = loop_adapter(&loop);
    which = take_byte(&input);
    if (which >= 128)
        take_credentials(&input, &options, credentials);
    status =
        evlock_client_new(&client, &adapter, urls[which < 192 ? which % 2 : 2], with_room(&options, sizeof(options)));
    check_status(status);
    check((status == EVLOCK_OK) == (client != NULL));
    for (int i = 0; client && i < 3; i++)
        make_lock(&input, client, &told, &expected);
    loop_turn(&loop);
    loop_pass(&loop, 50000);
    evlock_client_free(client);
    loop_turn(&loop);
    check(told == expected);
    check(counted_live() == 0);
    loop_end(&loop);
    return 0;
}
