/*
 * Rounds: a table of members, of what befalls them and the rounds, and of who is visited by that. Each member is a
 * letter.
 */
#include <string.h>

#include "check.h"
#include "rounds.h"

/*
 * Moves: '(' begins the first round, and '.' takes a member by it; '[' and ',' are the same of the second. "+a" is new,
 * "-a" goes, "~a" becomes a ghost. Each taken is a letter of `visited`; '-': the round is over.
 */
struct row {
    const char *name;
    const char *live;
    const char *ghosts;
    const char *moves;
    const char *visited;
};

static const struct row rows[] = {
    {"all are visited, ghosts last", "abc", "xy", "(......", "abcxy-"},
    {"there is nobody", "", "", "(..", "--"},
    {"there are ghosts alone", "", "xy", "(...", "xy-"},
    {"what was never begun is over", "ab", "x", "..", "--"},
    {"what is over stays over", "a", "x", "(...+b~a.", "ax--"},
    {"what was over is begun again", "a", "x", "(...(...", "ax-ax-"},
    {"a round is begun anew on its way", "abc", "x", "(..(.....", "ababcx-"},
    {"a round is begun anew among the ghosts", "a", "xy", "(..(....", "axaxy-"},
    {"who was visited goes", "abc", "x", "(..-a...", "abcx-"},
    {"who is next goes", "abc", "x", "(.-b...", "acx-"},
    {"who comes later goes", "abc", "x", "(.-c...", "abx-"},
    {"all who are left go", "abc", "x", "(.-b-c..", "ax-"},
    {"the last goes before the ghosts", "ab", "xy", "(.-b...", "axy-"},
    {"the next ghost goes", "a", "xyz", "(..-y..", "axz-"},
    {"the last ghost goes", "a", "xy", "(..-y.", "ax-"},
    {"all go", "a", "x", "(-a-x.", "-"},
    {"who is next becomes a ghost, and is visited as one", "abc", "x", "(.~b....", "acxb-"},
    {"the last becomes a ghost", "ab", "x", "(.~b...", "axb-"},
    {"who was visited becomes a ghost, and is visited twice", "ab", "x", "(.~a....", "abxa-"},
    {"a new one comes last", "ab", "x", "(.+c....", "abcx-"},
    {"a new one behind the last is not visited", "ab", "x", "(..+c..", "abx-"},
    {"a new one among the ghosts is not visited", "a", "xy", "(..+c..", "axy-"},
    {"one becomes a ghost while these are visited", "ab", "xy", "(...~a...", "abxya-"},
    {"two rounds do not know of each other", "abc", "x", "(.[,,.,.,,.", "aabbccx-x"},
    {"two go on behind the same one", "abc", "x", "(.[,-b.,.,.,", "aaccxx--"},
    {"one of two ends with who goes", "ab", "", "([,-a.,.-b,", "abb--"},
    {"both end with who goes, and one is begun again", "a", "x", "([-a.,(.,.", "xxx--"},
    {"who goes is next for the second only", "abc", "", "(..[,-b.,.,", "abacc--"},
};

static struct round_member members[26];

static struct round_member *member_of(char letter) {
    return &members[letter - 'a'];
}

static bool is_listed(const struct round_members *list, const struct round_member *sought) {
    const struct round_member *member;

    TAILQ_FOREACH (member, list, link)
        if (member == sought)
            return true;
    return false;
}

static void befall(struct rounds *rounds, char what, char letter) {
    struct round_member *member = member_of(letter);
    bool ghost = is_listed(&rounds->ghosts, member);

    if (what != '+')
        evl_rounds_remove(rounds, member, ghost);
    if (what != '-')
        evl_rounds_add(rounds, member, what == '~');
}

static char take(struct rounds *rounds, struct round *round) {
    const struct round_member *member = evl_round_take(rounds, round);

    return member ? (char)('a' + (member - members)) : '-';
}

static void visit(const struct row *row, char *visited) {
    struct round first = {0}, second = {0};
    struct rounds rounds;

    evl_rounds_init(&rounds);
    for (const char *at = row->live; *at; at++)
        evl_rounds_add(&rounds, member_of(*at), false);
    for (const char *at = row->ghosts; *at; at++)
        evl_rounds_add(&rounds, member_of(*at), true);
    for (const char *at = row->moves; *at; at++) {
        if (*at == '(' || *at == '[')
            evl_round_begin(&rounds, *at == '(' ? &first : &second);
        else if (*at == '.' || *at == ',')
            *visited++ = take(&rounds, *at == '.' ? &first : &second);
        else
            befall(&rounds, *at, at[1]);
        if (strchr("+-~", *at))
            at++;
        evl_check(evl_rounds_check(&rounds));
        assert_int_equal(LIST_EMPTY(&rounds.open), !first.next && !second.next);
    }
    *visited = '\0';
}

CASE(each_row_visits_whom_it_names) {
    int failed = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char visited[32];

        visit(&rows[i], visited);
        if (strcmp(visited, rows[i].visited) != 0) {
            print_error("%s: \"%s\", not \"%s\"\n", rows[i].name, visited, rows[i].visited);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_row_visits_whom_it_names)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
