/*
 * evlock doctor: says what the servers can do, what it costs that they cannot do more, and whether what the options ask
 * for works, by trying it on a lock of a random name. It owns what it found. It leaves no lock behind, and touches none
 * of others; what fences leave behind is a counter.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "duration.h"
#include "exits.h"
#include "json.h"
#include "plain.h"
#include "say.h"
#include "servers.h"
#include "session.h"

static bool doctor_fence;

enum doctor_result { DOCTOR_NOT_TRIED, DOCTOR_WORKS, DOCTOR_FAILS };

struct doctor;

/* Something to try. */
struct trial {
    const char *name;
    const char *hint; /* why it was not tried */
    bool optional;    /* it may fail, for only some subcommands need it */
    bool (*wanted)(const struct options *options);
    void (*begin)(struct doctor *doctor);
};

struct found {
    enum doctor_result result;
    char details[256];
};

enum {
    DOCTOR_NAME_SIZE = 32,
    DOCTOR_TRIALS = 5,
    DOCTOR_LINES = 64,     /* of what the library says */
    DOCTOR_LOOK_MS = 20,   /* from one look at something to the next */
    DOCTOR_MOST_MS = 5000, /* that a trial may take */
};

struct doctor {
    struct session session;
    struct event *timer;
    char name[DOCTOR_NAME_SIZE];
    evlock *lock, *other;
    struct found found[DOCTOR_TRIALS];
    size_t trial;
    int64_t looks; /* at the connections, or of this trial */
    uint64_t fence;
    char *lines[DOCTOR_LINES];
    size_t line_count;
};

static const struct trial doctor_trials[DOCTOR_TRIALS];
static void doctor_next(struct doctor *doctor);

/* --- What was found ----------------------------------------------------------------------------------------------- */

static const char *const doctor_results[] = {"not tried", "works", "FAILS"};

static bool doctor_is_well(const struct doctor *doctor) {
    for (size_t i = 0; i < DOCTOR_TRIALS; i++) {
        if (doctor->found[i].result == DOCTOR_FAILS && !doctor_trials[i].optional)
            return false;
    }
    return true;
}

static void doctor_print(const struct doctor *doctor) {
    servers_print(doctor->session.client);
    printf("\n%-8s  %-10s  %s\n", "TRIAL", "RESULT", "DETAILS");
    for (size_t i = 0; i < DOCTOR_TRIALS; i++) {
        const struct found *found = &doctor->found[i];
        bool tried = found->result != DOCTOR_NOT_TRIED;
        printf("%-8s  %-10s  %s\n", doctor_trials[i].name, doctor_results[found->result],
               tried ? found->details : doctor_trials[i].hint);
    }
    if (doctor->line_count > 0)
        printf("\nWhat the library says:\n");
    for (size_t i = 0; i < doctor->line_count; i++) {
        fputs("  ", stdout);
        plain_print(stdout, doctor->lines[i], strlen(doctor->lines[i]), 0);
        putchar('\n');
    }
}

static void doctor_print_json(const struct doctor *doctor) {
    static const char *const results[] = {"not tried", "works", "fails"};
    struct json json = {.out = stdout};
    json_open(&json, NULL, '{');
    json_truth(&json, "ok", doctor_is_well(doctor));
    servers_print_json(doctor->session.client, &json, "servers");
    json_open(&json, "trials", '[');
    for (size_t i = 0; i < DOCTOR_TRIALS; i++) {
        json_open(&json, NULL, '{');
        json_text(&json, "name", doctor_trials[i].name);
        json_text(&json, "result", results[doctor->found[i].result]);
        json_text(&json, "details", doctor->found[i].details);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "log", '[');
    for (size_t i = 0; i < doctor->line_count; i++)
        json_text(&json, NULL, doctor->lines[i]);
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}

/* --- Trials ------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void doctor_note(struct doctor *doctor, enum doctor_result result,
                                                              const char *format, ...) {
    struct found *found = &doctor->found[doctor->trial];
    va_list arguments;
    found->result = result;
    va_start(arguments, format);
    vsnprintf(found->details, sizeof found->details, format, arguments);
    va_end(arguments);
}

/* The trial fails, in the library's words. */
static void doctor_fail(struct doctor *doctor, int status) {
    const char *details = evlock_last_error();
    if (*details)
        doctor_note(doctor, DOCTOR_FAILS, "%s (%s)", evlock_strerror(status), details);
    else
        doctor_note(doctor, DOCTOR_FAILS, "%s", evlock_strerror(status));
    doctor_next(doctor);
}

static void doctor_look_again(struct doctor *doctor) {
    struct timeval span = duration_span(DOCTOR_LOOK_MS);
    doctor->looks++;
    if (event_add(doctor->timer, &span) != 0)
        session_end(&doctor->session, say_error(EXIT_TROUBLE, "the system has no timer to give"));
}

static bool doctor_is_late(const struct doctor *doctor) {
    return doctor->looks > DOCTOR_MOST_MS / DOCTOR_LOOK_MS;
}

/* A handle for this trial, acquired. A counter of fences stays for a week: all doctors use the same. */
static void doctor_acquire(struct doctor *doctor, const evlock_options *wanted, evlock_cb cb) {
    const char *name = wanted->fence ? "evlock-doctor" : doctor->name;
    evlock_options options = *wanted;
    options.max_wait_ms = DOCTOR_MOST_MS;
    int status = evlock_new(&doctor->lock, doctor->session.client, name, EVLOCK_CSTRING, &options);
    if (status == EVLOCK_OK)
        status = evlock_acquire(doctor->lock, NULL, cb, doctor);
    if (status != EVLOCK_OK)
        doctor_fail(doctor, status);
}

/* Polling asks nothing that is tried elsewhere. */
static evlock_options doctor_options(const struct doctor *doctor) {
    evlock_options wanted = options_lock(doctor->session.options);
    wanted.wait = EVLOCK_WAIT_POLL;
    wanted.max_attempts = 0;
    wanted.min_replicas = 0;
    return wanted;
}

/* A name that nobody else has. */
static void doctor_draw_name(char ret[DOCTOR_NAME_SIZE]) {
    uint64_t drawn;
    evutil_secure_rng_get_bytes(&drawn, sizeof drawn);
    snprintf(ret, DOCTOR_NAME_SIZE, "evlock-doctor-%016" PRIx64, drawn);
}

static bool doctor_goes_on(const struct doctor *doctor) {
    return !doctor->session.ending;
}

/* Whether the trial goes on, as something was done: else it fails, or all ends. */
static bool doctor_has_done(struct doctor *doctor, int status) {
    if (!doctor_goes_on(doctor))
        return false;
    if (status != EVLOCK_OK)
        doctor_fail(doctor, status);
    return status == EVLOCK_OK;
}

static void doctor_on_released(evlock *lock, int status, void *arg) {
    struct doctor *doctor = arg;
    (void)lock;
    if (doctor_has_done(doctor, status))
        doctor_next(doctor);
}

/* The trial has worked if this does. */
static void doctor_release(struct doctor *doctor) {
    int status = evlock_release(doctor->lock, doctor_on_released, doctor);
    if (status != EVLOCK_OK)
        doctor_fail(doctor, status);
}

static bool doctor_always(const struct options *options) {
    (void)options;
    return true;
}

/* A lock: acquired, extended, released. */

static void doctor_on_extended(evlock *lock, int status, void *arg) {
    struct doctor *doctor = arg;
    (void)lock;
    if (!doctor_has_done(doctor, status))
        return;
    doctor_note(doctor, DOCTOR_WORKS, "acquired, extended and released");
    doctor_release(doctor);
}

static void doctor_on_locked(evlock *lock, int status, void *arg) {
    struct doctor *doctor = arg;
    if (!doctor_goes_on(doctor))
        return;
    if (status == EVLOCK_OK)
        status = evlock_extend(lock, 0, EVLOCK_EXTEND_RESET, doctor_on_extended, doctor);
    if (status != EVLOCK_OK)
        doctor_fail(doctor, status);
}

/* A lock of a random name would tell of one master's slots alone. */
static void doctor_try_lock(struct doctor *doctor) {
    evlock_options wanted = doctor_options(doctor);
    if (doctor->session.cluster && servers_lack_one(doctor->session.client)) {
        doctor_note(doctor, DOCTOR_FAILS, "a master is away, and the locks of its slots with it");
        doctor_next(doctor);
        return;
    }
    doctor_acquire(doctor, &wanted, doctor_on_locked);
}

/* The line: a second one waits, and is granted the lock by a message. */

static bool doctor_wants_queue(const struct options *options) {
    return options->queue;
}

static void doctor_on_granted(evlock *lock, int status, void *arg) {
    struct doctor *doctor = arg;
    evlock_stats stats = {.handed = 0};
    (void)lock;
    if (!doctor_goes_on(doctor))
        return;
    evlock_client_stats(doctor->session.client, &stats, sizeof stats);
    if (status != EVLOCK_OK)
        doctor_note(doctor, DOCTOR_FAILS, "%s", evlock_strerror(status));
    else if (stats.handed == 0)
        doctor_note(doctor, DOCTOR_FAILS, "who waits is not told, and tries again and again");
    else
        doctor_note(doctor, DOCTOR_WORKS, "handed on from one to the next");
    doctor_next(doctor);
}

static void doctor_on_place(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct doctor *doctor = arg;
    (void)lock;
    if (!doctor_has_done(doctor, status))
        return;
    if (answer->place == 1 || doctor_is_late(doctor))
        evlock_release(doctor->lock, NULL, NULL);
    else
        doctor_look_again(doctor);
}

static void doctor_look_at_place(struct doctor *doctor) {
    int status = evlock_query(doctor->other, EVLOCK_QUERY_PLACE, doctor_on_place, doctor);
    if (status != EVLOCK_OK)
        doctor_fail(doctor, status);
}

static void doctor_on_first_of_line(evlock *lock, int status, void *arg) {
    struct doctor *doctor = arg;
    (void)lock;
    if (!doctor_goes_on(doctor))
        return;
    evlock_options wanted = doctor_options(doctor);
    wanted.wait = EVLOCK_WAIT_QUEUE;
    wanted.max_wait_ms = INT64_C(2) * DOCTOR_MOST_MS;
    if (status == EVLOCK_OK)
        status = evlock_new(&doctor->other, doctor->session.client, doctor->name, EVLOCK_CSTRING, &wanted);
    if (status == EVLOCK_OK)
        status = evlock_acquire(doctor->other, NULL, doctor_on_granted, doctor);
    if (status == EVLOCK_OK)
        doctor_look_at_place(doctor);
    else
        doctor_fail(doctor, status);
}

static void doctor_try_queue(struct doctor *doctor) {
    evlock_options wanted = doctor_options(doctor);
    wanted.wait = EVLOCK_WAIT_QUEUE;
    doctor_acquire(doctor, &wanted, doctor_on_first_of_line);
}

/* Fences: the second is greater than the first. */

static bool doctor_wants_fence(const struct options *options) {
    (void)options;
    return doctor_fence;
}

static void doctor_try_fence(struct doctor *doctor);

static void doctor_on_fence_released(evlock *lock, int status, void *arg) {
    struct doctor *doctor = arg;
    (void)lock;
    if (!doctor_has_done(doctor, status))
        return;
    evlock_free(doctor->lock);
    doctor->lock = NULL;
    doctor_try_fence(doctor);
}

static void doctor_on_fenced(evlock *lock, int status, void *arg) {
    struct doctor *doctor = arg;
    uint64_t before = doctor->fence;
    if (!doctor_goes_on(doctor))
        return;
    if (status == EVLOCK_OK && before == 0) {
        doctor->fence = evlock_fence(lock);
        status = evlock_release(lock, doctor_on_fence_released, doctor);
    } else if (status == EVLOCK_OK) {
        bool grows = evlock_fence(lock) > before;
        doctor_note(doctor, grows ? DOCTOR_WORKS : DOCTOR_FAILS, "%" PRIu64 ", then %" PRIu64, before,
                    evlock_fence(lock));
        doctor_release(doctor);
    }
    if (status != EVLOCK_OK)
        doctor_fail(doctor, status);
}

static void doctor_try_fence(struct doctor *doctor) {
    evlock_options wanted = doctor_options(doctor);
    wanted.fence = true;
    doctor_acquire(doctor, &wanted, doctor_on_fenced);
}

/* Replicas. */

static bool doctor_wants_replicas(const struct options *options) {
    return options->min_replicas > 0;
}

static void doctor_on_replicated(evlock *lock, int status, void *arg) {
    struct doctor *doctor = arg;
    (void)lock;
    if (!doctor_has_done(doctor, status))
        return;
    doctor_note(doctor, DOCTOR_WORKS, "%" PRId64 " had the lock in time", doctor->session.options->min_replicas);
    doctor_release(doctor);
}

static void doctor_try_replicas(struct doctor *doctor) {
    evlock_options wanted = doctor_options(doctor);
    wanted.min_replicas = doctor->session.options->min_replicas;
    doctor_acquire(doctor, &wanted, doctor_on_replicated);
}

/* Listings: to the end, and so at each master of a cluster. */

static void doctor_list(struct doctor *doctor, const evlock_cursor *from);

static void doctor_on_page(evlock_client *client, int status, const evlock_page *page, void *arg) {
    struct doctor *doctor = arg;
    (void)client;
    if (!doctor_has_done(doctor, status))
        return;
    if (page->more) {
        doctor_list(doctor, &page->next);
        return;
    }
    doctor_note(doctor, DOCTOR_WORKS, "for evlock list and evlock top");
    doctor_next(doctor);
}

static void doctor_list(struct doctor *doctor, const evlock_cursor *from) {
    int status = evlock_client_list(doctor->session.client, doctor->name, EVLOCK_CSTRING, from, doctor_on_page, doctor);
    if (status != EVLOCK_OK)
        doctor_fail(doctor, status);
}

static void doctor_try_list(struct doctor *doctor) {
    doctor_list(doctor, NULL);
}

static const struct trial doctor_trials[DOCTOR_TRIALS] = {
    {"lock", "", false, doctor_always, doctor_try_lock},
    {"queue", "--queue tries it", false, doctor_wants_queue, doctor_try_queue},
    {"fence", "--fence tries it", false, doctor_wants_fence, doctor_try_fence},
    {"replicas", "--min-replicas N tries it", false, doctor_wants_replicas, doctor_try_replicas},
    {"list", "", true, doctor_always, doctor_try_list},
};

/* --- The course --------------------------------------------------------------------------------------------------- */

/* One that is away is being connected to now and then: that is waited out, as it is no news of it. */
static void doctor_finish(struct doctor *doctor) {
    if (!servers_have_come(doctor->session.client) && !doctor_is_late(doctor)) {
        doctor_look_again(doctor);
        return;
    }
    if (doctor->session.options->json)
        doctor_print_json(doctor);
    else
        doctor_print(doctor);
    session_end(&doctor->session, doctor_is_well(doctor) ? EXIT_OK : EXIT_NOT_HAD);
}

/* Begins the trial at hand, or passes it over. */
static void doctor_begin(struct doctor *doctor) {
    const struct options *options = doctor->session.options;
    while (doctor->trial < DOCTOR_TRIALS && !doctor_trials[doctor->trial].wanted(options))
        doctor->trial++;
    doctor->looks = 0;
    if (doctor->trial < DOCTOR_TRIALS)
        doctor_trials[doctor->trial].begin(doctor);
    else
        doctor_finish(doctor);
}

/* What the trial before has had is given back in the background. */
static void doctor_next(struct doctor *doctor) {
    event_del(doctor->timer);
    evlock_free(doctor->lock);
    evlock_free(doctor->other);
    doctor->lock = doctor->other = NULL;
    doctor->trial++;
    doctor_begin(doctor);
}

static void doctor_on_woken(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    (void)status, (void)answer, (void)arg;
    evlock_free(lock);
}

/* A cluster's master is connected to when something is asked of it: sooner or later, some name is of its slots. */
static void doctor_wake_some(struct doctor *doctor) {
    evlock_options options = options_lock(doctor->session.options);
    char name[DOCTOR_NAME_SIZE];
    evlock *lock;
    doctor_draw_name(name);
    if (evlock_new(&lock, doctor->session.client, name, EVLOCK_CSTRING, &options) != EVLOCK_OK)
        return;
    if (evlock_query(lock, EVLOCK_QUERY_TTL, doctor_on_woken, NULL) != EVLOCK_OK)
        evlock_free(lock);
}

/* Of a session that cannot connect the session itself says so. */
static void doctor_on_timer(evutil_socket_t fd, short what, void *arg) {
    struct doctor *doctor = arg;
    (void)fd, (void)what;
    if (!doctor_goes_on(doctor))
        return;
    if (doctor->other) {
        doctor_look_at_place(doctor);
    } else if (!doctor->session.served) {
        doctor_look_again(doctor);
    } else if (doctor->trial == DOCTOR_TRIALS) {
        doctor_finish(doctor);
    } else if (servers_have_come(doctor->session.client) || doctor_is_late(doctor)) {
        doctor_begin(doctor);
    } else {
        doctor_wake_some(doctor);
        doctor_look_again(doctor);
    }
}

/* What is worth knowing; also what is lacking, which may be said as a thing of little weight. */
static void doctor_on_line(enum evlock_log_level level, const char *line, void *arg) {
    struct doctor *doctor = arg;
    if (level < EVLOCK_LOG_INFO || (level == EVLOCK_LOG_INFO && !strstr(line, " lacks ")))
        return;
    for (size_t i = 0; i < doctor->line_count; i++) {
        if (strcmp(doctor->lines[i], line) == 0)
            return;
    }
    char *copy = doctor->line_count < DOCTOR_LINES ? strdup(line) : NULL;
    if (copy)
        doctor->lines[doctor->line_count++] = copy;
}

static int doctor_run(const struct options *options, int count, char **operands) {
    struct doctor doctor = {.trial = 0};
    (void)count, (void)operands;
    doctor_draw_name(doctor.name);
    int exit = session_open(&doctor.session, options);
    if (exit)
        return exit;
    doctor.session.on_line = doctor_on_line;
    doctor.session.on_line_arg = &doctor;
    doctor.timer = event_new(doctor.session.base, -1, 0, doctor_on_timer, &doctor);
    if (doctor.timer)
        doctor_look_again(&doctor);
    else
        session_end(&doctor.session, say_error(EXIT_TROUBLE, "the system has no timer to give"));
    exit = session_loop(&doctor.session);
    session_forget(doctor.timer);
    evlock_free(doctor.lock);
    evlock_free(doctor.other);
    session_free(&doctor.session);
    while (doctor.line_count > 0)
        free(doctor.lines[--doctor.line_count]);
    return exit;
}

static const struct option_row doctor_options_own[] = {
    {"fence", 0, OPTION_FLAG, &doctor_fence, NULL, "try fences, too", 0, 0},
    {0},
};

const struct command doctor_command = {
    .name = "doctor",
    .purpose = "Say what the servers can do, and whether what is asked for works.",
    .usage = "[OPTION...]",
    .details = "It tries a lock of a random name, and what the options ask for: --queue, --fence, --min-replicas. It\n"
               "exits with 0 if all of that works, with 1 if some does not, and with 125 if no server can be used.\n",
    .groups = OPTIONS_SERVER | OPTIONS_LEASE | OPTIONS_WAIT,
    .own = doctor_options_own,
    .least = 0,
    .most = 0,
    .run = doctor_run,
};
