/*
 * Tables of clusters: what servers of all ages say of their cluster is read, what makes no sense is refused, and of two
 * tables the greater epoch wins, slot by slot.
 */
#include <stdio.h>
#include <string.h>

#include "shards.h"

#define A "0000000000000000000000000000000000000aaa"
#define B "0000000000000000000000000000000000000bbb"
#define C "0000000000000000000000000000000000000ccc"

static struct shards table;

static int read_table(struct shards *ret, const char *text) {
    return evl_shards_read(ret, text, strlen(text)).status;
}

static void expect(const char *text) {
    assert_int_equal(read_table(&table, text), EVLOCK_OK);
}

static bool says(struct bytes bytes, const char *text) {
    return evl_same_bytes(bytes, (struct bytes){text, strlen(text)});
}

CASE(a_table_of_three_masters_is_read) {
    expect(A " 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5460\n" B
             " 127.0.0.1:7002@17002,host-b,shard-id=x master - 0 1 2 connected 5461-10922 10924\n" C
             " 127.0.0.1:7003@17003 slave " A " 0 1 1 connected\n");
    assert_int_equal(table.count, 3);
    assert_true(table.members[0].myself && table.members[0].is_master && table.members[0].owns);
    assert_int_equal(table.members[0].port, 7001);
    assert_true(says(table.members[0].address, "127.0.0.1") && says(table.members[0].id, A));
    assert_int_equal(table.members[0].name.len, 0);
    assert_true(says(table.members[1].name, "host-b"));
    assert_int_equal(table.members[1].epoch, 2);
    assert_false(table.members[2].is_master || table.members[2].owns);
    assert_int_equal(table.members[2].master, 0);
    assert_int_equal(table.owners[0], 0);
    assert_int_equal(table.owners[5461], 1);
    assert_int_equal(table.owners[10924], 1);
    assert_int_equal(table.owners[10923], SHARDS_NONE);
    evl_shards_free(&table);
}

CASE(what_older_and_odd_servers_say_is_read) {
    expect(A " :7001@17001 myself,master - 0 0 0 connected 0 [0->-" B "] [9-<-" B "]\r\n" B
             " ::1:7002 master,fail? - 0 0 3 connected 1-2\n\n" C
             " ?:7003@17003,?,a=b master,fail,noaddr - 0 0 3 disconnected\n");
    assert_int_equal(table.count, 3);
    assert_int_equal(table.members[0].address.len, 0);
    assert_true(says(table.members[1].address, "::1"));
    assert_false(table.members[1].failing);
    assert_int_equal(table.members[2].address.len, 0);
    assert_int_equal(table.members[2].name.len, 0);
    assert_int_equal(table.members[2].port, 0);
    assert_true(table.members[2].failing);
    assert_int_equal(table.owners[9], SHARDS_NONE);
    evl_shards_free(&table);
}

CASE(nonsense_is_refused) {
    static const char *const texts[] = {
        "",
        "\n",
        "OK",
        A,
        A " 127.0.0.1 master - 0 0 1 connected",
        A " 127.0.0.1:x@1 master - 0 0 1 connected",
        A " 127.0.0.1:65536@1 master - 0 0 1 connected",
        A " 127.0.0.1:1@1 master - 0 0 -1 connected",
        A " 127.0.0.1:1@1 master - 0 0 99999999999999999999 connected",
        A " 127.0.0.1:1@1 master - 0 0 1 connected 16384",
        A " 127.0.0.1:1@1 master - 0 0 1 connected 2-1",
        A " 127.0.0.1:1@1 master - 0 0 1 connected x",
        A " a/b:1@1 master - 0 0 1 connected 1",
        A " a:1@1,b@c master - 0 0 1 connected 1",
        " a:1@1 master - 0 0 1 connected 1",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(read_table(&table, texts[i]), EVLOCK_EPROTOCOL);
    assert_int_equal(evl_shards_read(&table, A " 1:1\0@1 master - 0 0 1 connected", 70).status, EVLOCK_EPROTOCOL);
}

CASE(members_are_found) {
    expect(A " :7001@17001 myself,master - 0 0 1 connected 0\n" B
             " 10.0.0.2:7001@17001,b master - 0 1 2 connected 1\n");
    assert_int_equal(evl_shards_find(&table, (struct bytes){B, 40}), 1);
    assert_int_equal(evl_shards_find(&table, (struct bytes){C, 40}), SHARDS_NONE);
    assert_int_equal(evl_shards_find_at(&table, (struct bytes){"10.0.0.2", 8}, 7001, "here"), 1);
    assert_int_equal(evl_shards_find_at(&table, (struct bytes){"b", 1}, 7001, "here"), 1);
    assert_int_equal(evl_shards_find_at(&table, (struct bytes){"b", 1}, 7002, "here"), SHARDS_NONE);
    assert_int_equal(evl_shards_find_at(&table, (struct bytes){"here", 4}, 7001, "here"), 0);
    assert_int_equal(evl_shards_find_at(&table, (struct bytes){"", 0}, 7001, "here"), 0);
    assert_int_equal(evl_shards_find_at(&table, (struct bytes){"", 0}, 7001, "10.0.0.2"), 0);
    evl_shards_give(&table, 7, 1);
    assert_int_equal(table.owners[7], 1);
    evl_shards_free(&table);
}

/* Two that say that a slot is theirs. */
CASE(the_greater_epoch_has_the_slot) {
    expect(A " a:1@1 master - 0 0 5 connected 0-9\n" B " b:1@1 master - 0 0 4 connected 5-12\n");
    assert_int_equal(table.owners[5], 0);
    assert_int_equal(table.owners[12], 1);
    evl_shards_free(&table);
}

/* As after a split that nobody has settled yet. */
CASE(of_equal_epochs_the_first_has_the_slot) {
    expect(A " a:1@1 master - 0 0 5 connected 0-9\n" B " b:1@1 master - 0 0 5 connected 5-12\n");
    assert_int_equal(table.owners[5], 0);
    assert_int_equal(table.owners[12], 1);
    evl_shards_free(&table);
}

static void expect_owner(const char *known_text, const char *said_text, uint16_t owner) {
    struct shards known;

    assert_int_equal(read_table(&known, known_text), EVLOCK_OK);
    expect(said_text);
    evl_shards_mend(&table, &known);
    assert_int_equal(table.owners[3], owner);
    evl_shards_free(&known);
    evl_shards_free(&table);
}

CASE(an_older_table_does_not_take_a_slot_back) {
    static const char at_a[] = A " a:1@1 master - 0 0 5 connected 3\n" B " b:1@1 master - 0 0 4 connected\n";
    static const char at_b[] = A " a:1@1 master - 0 0 5 connected\n" B " b:1@1 master - 0 0 6 connected 3\n";
    static const char at_c[] = C " c:1@1 master - 0 0 1 connected 3\n";
    static const char nobody[] = A " a:1@1 master - 0 0 5 connected\n" B " b:1@1 master - 0 0 4 connected\n";

    expect_owner(at_a, at_b, 1);
    expect_owner(at_b, at_a, 1); /* it knows less of B */
    expect_owner(at_a, at_a, 0);
    expect_owner(at_b, at_c, 0);             /* B is not known there at all */
    expect_owner(at_a, nobody, SHARDS_NONE); /* as it says of A what is known */
    expect_owner(at_b, nobody, 1);
}

/* It gives the slot to a lesser epoch than is known, but knows as much of who had it: it was told to. */
CASE(who_knows_as_much_of_the_owner_may_give_its_slot_away) {
    static const char at_b[] = A " a:1@1 master - 0 0 5 connected\n" B " b:1@1 master - 0 0 6 connected 3\n";
    static const char to_a[] = A " a:1@1 master - 0 0 5 connected 3\n" B " b:1@1 master - 0 0 6 connected\n";

    expect_owner(at_b, to_a, 0);
}

/* It knows less of who had the slot, but gives it to a greater epoch than that: it has heard of a later move. */
CASE(who_knows_of_a_greater_epoch_may_know_less_of_the_owner) {
    static const char at_a[] = A " a:1@1 master - 0 0 5 connected 3\n" B " b:1@1 master - 0 0 4 connected\n";
    static const char to_b[] = A " a:1@1 master - 0 0 4 connected\n" B " b:1@1 master - 0 0 6 connected 3\n";

    expect_owner(at_a, to_b, 1);
}

CASE(a_failover_is_not_forgotten) {
    static const char before[] = A " a:1@1 master - 0 0 5 connected 3\n" B " b:1@1 slave " A " 0 0 5 connected\n";
    static const char after[] = A " a:1@1 slave " B " 0 0 7 connected\n" B " b:1@1 master - 0 0 7 connected 3\n";
    struct shards known;

    expect_owner(before, after, 1);
    expect_owner(after, before, 1);
    assert_int_equal(read_table(&known, after), EVLOCK_OK);
    expect(before);
    evl_shards_mend(&table, &known);
    assert_true(table.members[1].is_master && table.members[1].owns && table.members[1].epoch == 7);
    assert_false(table.members[0].is_master || table.members[0].owns);
    assert_int_equal(table.members[0].master, 1);
    evl_shards_free(&known);
    evl_shards_free(&table);
}

CASE(redirections_are_read) {
    struct redirect redirect;

    assert_true(evl_shards_redirect(&redirect, "MOVED 3999 127.0.0.1:6381"));
    assert_true(!redirect.ask && redirect.slot == 3999 && redirect.port == 6381);
    assert_true(says(redirect.host, "127.0.0.1"));
    assert_true(evl_shards_redirect(&redirect, "ASK 0 ::1:1"));
    assert_true(redirect.ask && says(redirect.host, "::1") && redirect.port == 1);
    assert_true(evl_shards_redirect(&redirect, "MOVED 1 :6381") && redirect.host.len == 0);
    assert_true(evl_shards_redirect(&redirect, "MOVED 1 ?:6381") && redirect.host.len == 0);
    assert_false(evl_shards_redirect(&redirect, "MOVED"));
    assert_false(evl_shards_redirect(&redirect, "MOVED 1"));
    assert_false(evl_shards_redirect(&redirect, "MOVED 16384 a:1"));
    assert_false(evl_shards_redirect(&redirect, "MOVED x a:1"));
    assert_false(evl_shards_redirect(&redirect, "MOVED 1 a:0"));
    assert_false(evl_shards_redirect(&redirect, "MOVED 1 a b"));
    assert_false(evl_shards_redirect(&redirect, "MOVED 1 a/b:1"));
    assert_false(evl_shards_redirect(&redirect, "ASKING 1 a:1"));
    assert_false(evl_shards_redirect(&redirect, ""));
}

/* How often each slot has a number, below the last that is tried. */
static unsigned marks[HASH_TAG_SLOTS];

CASE(a_mark_is_in_a_slot_of_its_member) {
    char mark[SHARDS_MARK_SIZE];
    expect(A " 127.0.0.1:7001@1 myself,master - 0 0 1 connected 0-9841\n" B
             " 127.0.0.1:7002@1 master - 0 0 2 connected 9842-16383\n" C
             " 127.0.0.1:7003@1 master - 0 0 3 connected\n");
    assert_true(evl_shards_mark(&table, 1, 0, mark));
    assert_string_equal(mark, "evlock:history:{0}"); /* in slot 13907 */
    assert_true(evl_shards_mark(&table, 1, 1, mark));
    assert_string_equal(mark, "evlock:history:{1}"); /* in slot 9842 */
    assert_true(evl_shards_mark(&table, 0, 0, mark));
    assert_string_equal(mark, "evlock:history:{2}"); /* in slot 5649 */
    assert_false(evl_shards_mark(&table, 2, 0, mark));
    evl_shards_free(&table);
}

CASE(every_slot_has_a_mark) {
    char mark[SHARDS_MARK_SIZE], text[128];
    int rarest = 0, len;
    for (unsigned number = 0; number < 262144; number++) {
        len = snprintf(mark, sizeof(mark), "%u", number);
        marks[evl_hash_tag_slot((struct bytes){mark, (size_t)len})]++;
    }
    for (int slot = 0; slot < HASH_TAG_SLOTS; slot++)
        if (marks[slot] < marks[rarest])
            rarest = slot;
    assert_true(marks[rarest] > 0);
    snprintf(text, sizeof(text), A " 127.0.0.1:7001@1 myself,master - 0 0 1 connected %d\n", rarest);
    expect(text);
    assert_true(evl_shards_mark(&table, 0, marks[rarest] - 1, mark));
    assert_int_equal(evl_hash_tag_slot((struct bytes){mark, strlen(mark)}), rarest);
    assert_false(evl_shards_mark(&table, 0, marks[rarest], mark));
    evl_shards_free(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_three_masters_is_read),
        cmocka_unit_test(what_older_and_odd_servers_say_is_read),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(members_are_found),
        cmocka_unit_test(the_greater_epoch_has_the_slot),
        cmocka_unit_test(of_equal_epochs_the_first_has_the_slot),
        cmocka_unit_test(an_older_table_does_not_take_a_slot_back),
        cmocka_unit_test(who_knows_as_much_of_the_owner_may_give_its_slot_away),
        cmocka_unit_test(who_knows_of_a_greater_epoch_may_know_less_of_the_owner),
        cmocka_unit_test(a_failover_is_not_forgotten),
        cmocka_unit_test(redirections_are_read),
        cmocka_unit_test(a_mark_is_in_a_slot_of_its_member),
        cmocka_unit_test(every_slot_has_a_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
