/*
 * Owing: every state of what masters owe a lease, and every input: a table that says for each pair what the lease hears
 * and what is owed then. The masters are A, which owes in every state but the first, and B, which is another.
 */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "owing.h"

#define A 3
#define B 1023

#define OUTCOME_SIZE 64

enum input {
    LOST_A, /* a command is lost there */
    LOST_B,
    A_HERE, /* A is back, and the lease is there: unsettled; … */
    A_HERE_SETTLED,
    A_HERE_REPLACED, /* settled, and it is another server */
    A_FLYING,        /* the same, and a command is unanswered there; … */
    A_FLYING_SETTLED,
    A_ELSEWHERE, /* A is back, and the lease is at B; … */
    A_ELSEWHERE_SETTLED,
    A_ELSEWHERE_REPLACED,
    A_ELSEWHERE_FLYING, /* settled, and a command is unanswered at B */
    B_HERE,             /* B is back, and the lease is there; … */
    B_HERE_SETTLED,
    B_HERE_FLYING, /* settled */
    B_ELSEWHERE,   /* settled, and the lease is at A */
    ANSWERED,
    ANSWERED_IN_PART, /* another command is unanswered still */
    A_GONE,
    A_GONE_FLYING,
    B_GONE,
    MOVED, /* the slot of the lease, from A to B; … */
    MOVED_FLYING,
    STAYED, /* others moved */
    INPUTS,
};

static const char *const input_names[INPUTS] = {"LOST_A",
                                                "LOST_B",
                                                "A_HERE",
                                                "A_HERE_SETTLED",
                                                "A_HERE_REPLACED",
                                                "A_FLYING",
                                                "A_FLYING_SETTLED",
                                                "A_ELSEWHERE",
                                                "A_ELSEWHERE_SETTLED",
                                                "A_ELSEWHERE_REPLACED",
                                                "A_ELSEWHERE_FLYING",
                                                "B_HERE",
                                                "B_HERE_SETTLED",
                                                "B_HERE_FLYING",
                                                "B_ELSEWHERE",
                                                "ANSWERED",
                                                "ANSWERED_IN_PART",
                                                "A_GONE",
                                                "A_GONE_FLYING",
                                                "B_GONE",
                                                "MOVED",
                                                "MOVED_FLYING",
                                                "STAYED"};

static struct comeback input_back(struct owing *owing, unsigned from, unsigned at, bool flying, bool settled) {
    return evl_owing_back(owing, (struct owing_place){at, flying}, (struct owing_return){from, settled, false});
}

static struct comeback input_replaced(struct owing *owing, unsigned at) {
    return evl_owing_back(owing, (struct owing_place){at, false}, (struct owing_return){A, true, true});
}

static struct comeback input_lost(struct owing *owing, unsigned master) {
    evl_owing_lost(owing, master);
    return (struct comeback){.heard = false};
}

static struct comeback do_input(struct owing *owing, enum input input) {
    switch (input) {
    case LOST_A:
    case LOST_B:
        return input_lost(owing, input == LOST_A ? A : B);
    case A_HERE:
    case A_HERE_SETTLED:
        return input_back(owing, A, A, false, input == A_HERE_SETTLED);
    case A_FLYING:
    case A_FLYING_SETTLED:
        return input_back(owing, A, A, true, input == A_FLYING_SETTLED);
    case A_ELSEWHERE:
    case A_ELSEWHERE_SETTLED:
        return input_back(owing, A, B, false, input == A_ELSEWHERE_SETTLED);
    case A_HERE_REPLACED:
    case A_ELSEWHERE_REPLACED:
        return input_replaced(owing, input == A_HERE_REPLACED ? A : B);
    case A_ELSEWHERE_FLYING:
        return input_back(owing, A, B, true, true);
    case B_HERE:
    case B_HERE_SETTLED:
        return input_back(owing, B, B, false, input == B_HERE_SETTLED);
    case B_HERE_FLYING:
        return input_back(owing, B, B, true, true);
    case B_ELSEWHERE:
        return input_back(owing, B, A, false, true);
    case ANSWERED:
    case ANSWERED_IN_PART:
        return evl_owing_answered(owing, input == ANSWERED_IN_PART);
    case A_GONE:
    case A_GONE_FLYING:
        return evl_owing_gone(owing, input == A_GONE_FLYING, A);
    case B_GONE:
        return evl_owing_gone(owing, false, B);
    case MOVED:
    case MOVED_FLYING:
        return evl_owing_moved(owing, (struct owing_place){A, input == MOVED_FLYING}, B);
    case STAYED:
        return evl_owing_moved(owing, (struct owing_place){A, false}, A);
    case INPUTS:
        break;
    }
    return (struct comeback){.heard = false};
}

/*
 * "A" owes; "A+": and so did another before; "A.": and it was back, unsettled; "A!": settled; "-": nobody owes. Behind
 * that is what the lease hears: "back", or "here", where its next command goes; of a settled or replaced one.
 */
static void outcome(char text[OUTCOME_SIZE], const struct owing *owing, struct comeback comeback) {
    const char *debtor = !owing->debtor ? "-" : owing->debtor == A + 1 ? "A" : owing->debtor == B + 1 ? "B" : "?";
    const char *back = owing->settled ? "!" : owing->back ? "." : "";
    int at = snprintf(text, OUTCOME_SIZE, "%s%s%s", debtor, owing->more ? "+" : "", back);

    if (comeback.heard)
        snprintf(text + at, OUTCOME_SIZE - (size_t)at, " %s%s%s", comeback.here ? "here" : "back",
                 comeback.settled ? " settled" : "", comeback.replaced ? " replaced" : "");
}

struct row {
    const char *name;
    struct owing owing;
    const char *outcomes[INPUTS]; /* NULL: nothing is heard, and as much is owed as before */
};

static const struct row rows[] = {
    {"nobody owes",
     {.debtor = 0},
     {[LOST_A] = "A",
      [LOST_B] = "B",
      [A_HERE] = "- here",
      [A_HERE_SETTLED] = "- here settled",
      [A_HERE_REPLACED] = "- here settled replaced",
      [B_HERE] = "- here",
      [B_HERE_SETTLED] = "- here settled",
      [MOVED] = "- back settled replaced"}},
    {"A owes",
     {.debtor = A + 1},
     {[LOST_B] = "B+",
      [A_HERE] = "- here",
      [A_HERE_SETTLED] = "- here settled",
      [A_HERE_REPLACED] = "- here settled replaced",
      [A_FLYING] = "A.",
      [A_FLYING_SETTLED] = "A!",
      [A_ELSEWHERE] = "- back",
      [A_ELSEWHERE_SETTLED] = "- back settled",
      [A_ELSEWHERE_REPLACED] = "- back settled",
      [A_ELSEWHERE_FLYING] = "A!",
      [B_HERE] = "- here",
      [B_HERE_SETTLED] = "- here",
      [A_GONE] = "- back",
      [A_GONE_FLYING] = "A."}},
    {"A owes, and another before",
     {.debtor = A + 1, .more = 1},
     {[LOST_B] = "B+",
      [A_HERE] = "- here",
      [A_HERE_SETTLED] = "- here",
      [A_HERE_REPLACED] = "- here replaced",
      [A_FLYING] = "A+.",
      [A_FLYING_SETTLED] = "A+!",
      [A_ELSEWHERE] = "- back",
      [A_ELSEWHERE_SETTLED] = "- back",
      [A_ELSEWHERE_REPLACED] = "- back",
      [A_ELSEWHERE_FLYING] = "A+!",
      [B_HERE] = "- here",
      [B_HERE_SETTLED] = "- here",
      [A_GONE] = "- back",
      [A_GONE_FLYING] = "A+."}},
    {"A was back",
     {.debtor = A + 1, .back = 1},
     {[LOST_A] = "A",
      [LOST_B] = "B+",
      [A_HERE] = "- here",
      [A_HERE_SETTLED] = "- here settled",
      [A_HERE_REPLACED] = "- here settled replaced",
      [A_FLYING_SETTLED] = "A!",
      [A_ELSEWHERE] = "- back",
      [A_ELSEWHERE_SETTLED] = "- back settled",
      [A_ELSEWHERE_REPLACED] = "- back settled",
      [A_ELSEWHERE_FLYING] = "A!",
      [B_HERE] = "- here",
      [B_HERE_SETTLED] = "- here",
      [ANSWERED] = "- back",
      [A_GONE] = "- back"}},
    {"A was back, settled",
     {.debtor = A + 1, .back = 1, .settled = 1},
     {[LOST_A] = "A",
      [LOST_B] = "B+",
      [A_HERE] = "- here",
      [A_HERE_SETTLED] = "- here settled",
      [A_HERE_REPLACED] = "- here settled replaced",
      [A_FLYING] = "A.",
      [A_ELSEWHERE] = "- back",
      [A_ELSEWHERE_SETTLED] = "- back settled",
      [A_ELSEWHERE_REPLACED] = "- back settled",
      [B_HERE] = "- here",
      [B_HERE_SETTLED] = "- here",
      [ANSWERED] = "- back settled",
      [A_GONE] = "- back",
      [A_GONE_FLYING] = "A."}},
    {"A was back, of two",
     {.debtor = A + 1, .more = 1, .back = 1},
     {[LOST_A] = "A+",
      [LOST_B] = "B+",
      [A_HERE] = "- here",
      [A_HERE_SETTLED] = "- here",
      [A_HERE_REPLACED] = "- here replaced",
      [A_FLYING_SETTLED] = "A+!",
      [A_ELSEWHERE] = "- back",
      [A_ELSEWHERE_SETTLED] = "- back",
      [A_ELSEWHERE_REPLACED] = "- back",
      [A_ELSEWHERE_FLYING] = "A+!",
      [B_HERE] = "- here",
      [B_HERE_SETTLED] = "- here",
      [ANSWERED] = "- back",
      [A_GONE] = "- back"}},
    {"A was back, settled, of two",
     {.debtor = A + 1, .more = 1, .back = 1, .settled = 1},
     {[LOST_A] = "A+",
      [LOST_B] = "B+",
      [A_HERE] = "- here",
      [A_HERE_SETTLED] = "- here",
      [A_HERE_REPLACED] = "- here replaced",
      [A_FLYING] = "A+.",
      [A_ELSEWHERE] = "- back",
      [A_ELSEWHERE_SETTLED] = "- back",
      [A_ELSEWHERE_REPLACED] = "- back",
      [B_HERE] = "- here",
      [B_HERE_SETTLED] = "- here",
      [ANSWERED] = "- back",
      [A_GONE] = "- back",
      [A_GONE_FLYING] = "A+."}},
};

/* How many of a row are not as they should be. */
static int wrong_of(const struct row *row) {
    char unchanged[OUTCOME_SIZE], out[OUTCOME_SIZE];
    int wrong = 0;

    outcome(unchanged, &row->owing, (struct comeback){.heard = false});
    for (enum input input = 0; input < INPUTS; input++) {
        const char *expected = row->outcomes[input] ? row->outcomes[input] : unchanged;
        struct owing owing = row->owing;
        struct comeback comeback;

        owing.plainly = input & 1; /* marks of others stay */
        owing.endless = !owing.plainly;
        comeback = do_input(&owing, input);
        assert_true(owing.plainly == (input & 1) && owing.endless != owing.plainly);

        outcome(out, &owing, comeback);
        evl_check(evl_owing_check(&owing));
        if (strcmp(out, expected) == 0)
            continue;
        print_error("%s, %s: \"%s\", not \"%s\"\n", row->name, input_names[input], out, expected);
        wrong++;
    }
    return wrong;
}

CASE(each_state_takes_each_input) {
    int wrong = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        wrong += wrong_of(&rows[i]);
    assert_int_equal(wrong, 0);
}

/* The first number is not taken for none, and the last has room. */
CASE(each_master_can_owe) {
    static const unsigned masters[] = {0, 1, OWING_MASTERS - 1};

    for (size_t i = 0; i < sizeof(masters) / sizeof(masters[0]); i++) {
        struct owing owing = {0};

        evl_owing_lost(&owing, masters[i]);
        assert_true(owing.debtor);
        assert_false(evl_owing_gone(&owing, false, (masters[i] + 1) % OWING_MASTERS).heard);
        assert_true(evl_owing_gone(&owing, false, masters[i]).heard);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_takes_each_input),
        cmocka_unit_test(each_master_can_owe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
