/*
 * The simulated server beside a real one: the same commands give the same answers, byte for byte but for what two
 * servers cannot have in common (ids, the time). `test_conformance FIRST COUNT` runs so many random sequences from that
 * seed on; without these, a few. A difference is told with its seed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "../redis/server.h"
#include "pair.h"
#include "phrases.h"

#define STEPS 400
#define TRIES 5

static struct server real;
static uint64_t first_seed = 1, seeds = 120;

static int start_server(void **state) {
    (void)state;
    server_start(&real, false, NULL);
    return 0;
}

static int stop_server(void **state) {
    (void)state;
    server_stop(&real);
    return 0;
}

/* The words of errors, and a few rules, are those of one version. */
static void need_version(void) {
    redisReply *info = server_command(&real, "INFO server");
    bool fits = strstr(info->str, "redis_version:7.0.") && !strstr(info->str, "valkey");
    freeReplyObject(info);
    if (!fits) {
        printf("# the server is not Redis 7.0, whose answers are simulated\n");
        skip();
    }
}

static void pair_start(struct pair *pair, uint64_t seed) {
    *pair = (struct pair){.socket = real.socket, .sim = sim_server_new((unsigned)seed), .random = seed};
    server_do(&real, "FLUSHALL");
    server_do(&real, "SCRIPT FLUSH");
    server_do(&real, "CONFIG SET requirepass %s", "");
}

static void line_command(struct line *line, int argc, const char *const *argv) {
    struct output command = {0};
    command_write(&command, argc, argv);
    line_send(line, command.bytes, command.len);
    reply_free(&command);
}

#define SEND(line, ...)                                                                                                \
    line_command(line, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})

/* --- Sequences ---------------------------------------------------------------------------------------------------- */

static void print_phrase(const struct phrase *phrase, uint64_t seed, int step) {
    printf("# seed %llu, step %d:", (unsigned long long)seed, step);
    for (int i = 0; i < phrase->argc; i++)
        printf(" [%s]", phrase->argv[i]);
    printf("\n");
}

/* Each step of one of two connections, of which the second listens. */
static bool take_step(struct phrases *phrases, struct line lines[2], struct phrase *phrase) {
    bool listening = pair_draw(phrases->pair, 12) == 0;
    struct line *line = &lines[listening];
    (listening ? phrase_draw_listening : phrase_draw)(phrases, phrase);
    line_command(line, phrase->argc, phrase->argv);
    line_read(line);
    return line_alike(line, phrase->likeness);
}

/* Whether all went alike. `late`: it took so long that times do not tell. */
static bool run_sequence(uint64_t seed, bool *late) {
    struct pair pair;
    struct line lines[2];
    struct phrase phrase;
    bool alike = true;
    pair_start(&pair, seed);
    int64_t start = machine_now() / 1000;
    struct phrases phrases = {.pair = &pair, .times = seed * 1000};
    for (int i = 0; i < 2; i++)
        line_open(&lines[i], &pair);
    for (int step = 0; step < STEPS && alike; step++) {
        alike = take_step(&phrases, lines, &phrase);
        if (!alike)
            print_phrase(&phrase, seed, step);
    }
    for (int i = 0; i < 2; i++)
        line_close(&lines[i]);
    sim_server_free(pair.sim);
    *late = machine_now() / 1000 - start > PAIR_SLACK_MS / 2;
    return alike;
}

/* A time to live that this word of the phrase gives; 0 for none, as for a number that is not written as servers do. */
static int64_t ttl_given(const struct phrase *phrase, int at) {
    const char *before = phrase->argv[at - 1];
    bool given = strcasecmp(before, "px") == 0 || (at == 2 && strcasecmp(phrase->argv[0], "pexpire") == 0);
    int64_t ttl = given ? strtoll(phrase->argv[at], NULL, 10) : 0;
    char written[24];
    snprintf(written, sizeof(written), "%" PRId64, ttl);
    return strcmp(written, phrase->argv[at]) == 0 ? ttl : 0;
}

/* One that ends while a sequence runs would end on one side before the other. */
CASE(no_time_to_live_is_short) {
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct pair pair = {.random = seed};
        struct phrases phrases = {.pair = &pair, .times = seed * 1000};
        struct phrase phrase;
        for (int step = 0; step < STEPS; step++) {
            phrase_draw(&phrases, &phrase);
            for (int i = 1; i < phrase.argc; i++) {
                int64_t ttl = ttl_given(&phrase, i);
                if (ttl > 0 && ttl < PAIR_SLACK_MS)
                    print_phrase(&phrase, seed, step);
                assert_false(ttl > 0 && ttl < PAIR_SLACK_MS);
            }
        }
    }
}

CASE(random_commands_are_answered_alike) {
    unsigned different = 0;
    need_version();
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        bool late = true, alike = false;
        for (int i = 0; i < TRIES && late; i++)
            alike = run_sequence(seed, &late);
        different += !alike && !late;
    }
    assert_int_equal(different, 0);
}

/* --- Passwords, ends, and bytes that are no commands -------------------------------------------------------------- */

CASE(passwords_are_asked_for_alike) {
    static const char *const words[][4] = {{"GET", "k"},
                                           {"NOTHING"},
                                           {"GET"},
                                           {"CLIENT", "ID"},
                                           {"SCRIPT", "LOAD", "x"},
                                           {"AUTH", "wrong"},
                                           {"AUTH", "nobody", "secret"},
                                           {"PING"},
                                           {"CLIENT", "SETNAME", "a"},
                                           {"SUBSCRIBE", "c"},
                                           {"AUTH", "secret"},
                                           {"GET", "k"},
                                           {"CLIENT", "SETNAME", "visible"},
                                           {"CLIENT", "SETNAME", "a blank"},
                                           {"CLIENT", "SETNAME"},
                                           {"CLIENT", "SETINFO", "LIB-NAME", "evlock"},
                                           {"CLIENT", "INFO", "more"},
                                           {"AUTH", "wrong"},
                                           {"GET", "k"},
                                           {"AUTH", "default", "secret"}};
    struct pair pair;
    struct line line;
    need_version();
    pair_start(&pair, 1);
    server_do(&real, "CONFIG SET requirepass %s", "secret");
    sim_server_set_password(pair.sim, "secret");
    line_open(&line, &pair);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        int argc = 0;
        while (argc < 4 && words[i][argc])
            argc++;
        line_command(&line, argc, words[i]);
    }
    line_read(&line);
    bool alike = line_alike(&line, SAME);
    server_do(&real, "CONFIG SET requirepass %s", "");
    assert_true(alike);
    line_close(&line);
    sim_server_free(pair.sim);
}

CASE(wrong_bytes_end_alike) {
    static const char *const wrong[] = {
        "*1\r\n!3\r\nfoo\r\n",   "*1\r\n$-1\r\n",
        "*1\r\n$abc\r\nfoo\r\n", "*x\r\n",
        "*1\r\n$1x\r\n",         "*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nPING\r\nx"};
    struct pair pair;
    need_version();
    pair_start(&pair, 1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct line line;
        line_open(&line, &pair);
        line_send(&line, wrong[i], strlen(wrong[i]));
        line_read(&line);
        assert_true(line_alike(&line, SAME));
        assert_null(line.session);
        line_close(&line);
    }
    sim_server_free(pair.sim);
}

/* The number that CLIENT ID answers on each side, as a word. */
static void client_ids(struct line *line, char on_real[24], char on_sim[24]) {
    SEND(line, "CLIENT", "ID");
    line_read(line);
    snprintf(on_real, 24, "%lld", strtoll(line->real.bytes + 1, NULL, 10));
    snprintf(on_sim, 24, "%lld", strtoll(line->sim.bytes + 1, NULL, 10));
    line->real.len = line->sim.len = 0;
}

CASE(kill_ends_alike) {
    static const char *const skips[] = {"no", "yes"};
    struct pair pair;
    struct line killer, killed;
    char on_real[24], on_sim[24];
    need_version();
    pair_start(&pair, 1);
    for (size_t own = 0; own < 2; own++) {
        for (size_t i = 0; i < 2; i++) {
            line_open(&killer, &pair);
            line_open(&killed, &pair);
            client_ids(own ? &killer : &killed, on_real, on_sim);
            struct output command = {0};
            /* Each side has its own numbers. */
            command_write(&command, 6, (const char *[]){"CLIENT", "KILL", "ID", on_real, "SKIPME", skips[i]});
            assert_int_equal(write(killer.fd, command.bytes, command.len), command.len);
            command.len = 0;
            command_write(&command, 6, (const char *[]){"CLIENT", "KILL", "ID", on_sim, "SKIPME", skips[i]});
            sim_session_feed(killer.session, command.bytes, command.len);
            reply_free(&command);
            line_read(&killer);
            line_read(&killed);
            assert_true(line_alike(&killer, SAME));
            assert_true(line_alike(&killed, SAME));
            assert_int_equal(!killer.session, own && i == 0);
            assert_int_equal(!killed.session, !own);
            line_close(&killer);
            line_close(&killed);
        }
    }
    sim_server_free(pair.sim);
}

/* What logins look for in what is told of themselves. */
CASE(a_connection_is_told_of_itself) {
    static const char *const fields[] = {"id=", " addr=", " name=", " age=0 "};
    struct pair pair;
    struct line line;
    need_version();
    pair_start(&pair, 1);
    line_open(&line, &pair);
    SEND(&line, "CLIENT", "INFO");
    line_read(&line);
    reply_raw(&line.real, "", 1);
    reply_raw(&line.sim, "", 1);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        assert_non_null(strstr(line.real.bytes, fields[i]));
        assert_non_null(strstr(line.sim.bytes, fields[i]));
    }
    line_close(&line);
    sim_server_free(pair.sim);
}

/* What logins look for in INFO. */
CASE(info_has_the_same_fields) {
    static const char *const sections[][3] = {{"server", "\nrun_id:", "\nuptime_in_seconds:"},
                                              {"memory", "\nmaxmemory:0\r\n", "\nmaxmemory_policy:noeviction\r\n"},
                                              {"persistence", "\nloading:0\r\n", "\naof_enabled:0\r\n"},
                                              {"replication", "\nmaster_replid:", "\nrole:master\r\n"}};
    struct pair pair;
    struct line line;
    need_version();
    pair_start(&pair, 1);
    line_open(&line, &pair);
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        SEND(&line, "INFO", sections[i][0]);
        line_read(&line);
        reply_raw(&line.real, "", 1);
        reply_raw(&line.sim, "", 1);
        for (size_t field = 1; field < 3; field++) {
            assert_non_null(strstr(line.real.bytes, sections[i][field]));
            assert_non_null(strstr(line.sim.bytes, sections[i][field]));
        }
        line.real.len = line.sim.len = 0;
    }
    line_close(&line);
    sim_server_free(pair.sim);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_asked_for_alike),
        cmocka_unit_test(wrong_bytes_end_alike),
        cmocka_unit_test(kill_ends_alike),
        cmocka_unit_test(a_connection_is_told_of_itself),
        cmocka_unit_test(info_has_the_same_fields),
        cmocka_unit_test(no_time_to_live_is_short),
        cmocka_unit_test(random_commands_are_answered_alike),
    };
    if (argc == 3) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = strtoull(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
