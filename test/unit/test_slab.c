/*
 * Slabs: what they give and take back, in any order and without memory, and that they keep no more than they say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <evlock/evlock.h>

#include "counted.h"
#include "memory.h"
#include "slab.h"

enum { SIZE = 300, ALONE = 3, MANY = 5000 };

static struct slabs slabs;
static unsigned char *blocks[MANY];

static void begin(void) {
    counted_begin(NULL);
    evl_slabs_init(&slabs, SIZE, ALONE);
}

static void end(void) {
    evl_slabs_free(&slabs);
    assert_int_equal(counted_live(), 0);
}

/* A block is zeroed, and is the test's own to write in. */
static bool take(size_t i) {
    if (!(blocks[i] = evl_slab_alloc(&slabs)))
        return false;
    assert_int_equal((uintptr_t)blocks[i] % sizeof(void *), 0);
    for (size_t at = 0; at < SIZE; at++)
        assert_int_equal(blocks[i][at], 0);
    memset(blocks[i], (int)(i % 255) + 1, SIZE);
    return true;
}

/* Nobody else wrote in it meanwhile. */
static void give_back(size_t i) {
    for (size_t at = 0; at < SIZE; at++)
        assert_int_equal(blocks[i][at], i % 255 + 1);
    evl_slab_free(blocks[i]);
    blocks[i] = NULL;
}

static void take_all(size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_true(take(i));
}

/* Who has which is up to chance from here on. */
static void mix(size_t count) {
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = (size_t)rand() % (i + 1);
        unsigned char *block = blocks[i];
        blocks[i] = blocks[other];
        blocks[other] = block;
        memset(blocks[other], (int)(other % 255) + 1, SIZE);
        memset(blocks[i], (int)(i % 255) + 1, SIZE);
    }
}

/* How many blocks of memory the slabs may keep when all came back. */
static long kept(void) {
    return EVL_MEMORY_WATCHED ? 0 : ALONE + 1;
}

CASE(the_first_are_by_themselves) {
    begin();
    take_all(ALONE);
    assert_int_equal(counted_live(), ALONE);
    for (size_t i = 0; i < ALONE; i++)
        give_back(i);
    assert_int_equal(counted_live(), EVL_MEMORY_WATCHED ? 0 : ALONE);
    take_all(ALONE);
    assert_int_equal(counted_live(), ALONE);
    for (size_t i = 0; i < ALONE; i++)
        give_back(i);
    end();
}

CASE(the_others_share_slabs) {
    begin();
    take_all(MANY);
    assert_int_in_range(counted_live(), ALONE + 2, EVL_MEMORY_WATCHED ? MANY : ALONE + 10);
    for (size_t i = 0; i < MANY; i++)
        give_back(i);
    assert_int_equal(counted_live(), kept());
    end();
}

CASE(they_come_back_in_any_order) {
    srand(7);
    begin();
    for (int round = 0; round < 5; round++) {
        take_all(MANY);
        mix(MANY);
        for (size_t i = 0; i < MANY / 2; i++)
            give_back(i);
        for (size_t i = 0; i < MANY / 2; i++)
            assert_true(take(i));
        mix(MANY);
        for (size_t i = 0; i < MANY; i++)
            give_back(i);
        assert_int_equal(counted_live(), kept());
    }
    end();
}

CASE(an_empty_slab_goes_while_others_are_in_use) {
    begin();
    take_all(MANY);
    long most = counted_live();
    for (size_t i = MANY - 1; i > ALONE; i--) /* all but those by themselves, and one in the first slab */
        give_back(i);
    assert_int_in_range(counted_live(), ALONE + 1, ALONE + 2);
    assert_true(counted_live() < most);
    for (size_t i = 0; i <= ALONE; i++)
        give_back(i);
    end();
}

CASE(what_came_back_is_taken_before_more_memory) {
    begin();
    take_all(MANY);
    long most = counted_live();
    for (size_t i = 0; i < MANY; i += 2)
        give_back(i);
    if (!EVL_MEMORY_WATCHED)
        counted_fail_after(0);
    for (size_t i = 0; i < MANY; i += 2)
        assert_true(take(i));
    assert_int_equal(counted_live(), most);
    for (size_t i = 0; i < MANY; i++)
        give_back(i);
    end();
}

CASE(one_more_and_one_less_takes_no_memory) {
    begin();
    take_all(ALONE + 1);
    give_back(ALONE);
    if (!EVL_MEMORY_WATCHED)
        counted_fail_after(0);
    for (int round = 0; round < 10; round++) {
        assert_true(take(ALONE));
        give_back(ALONE);
    }
    for (size_t i = 0; i < ALONE; i++)
        give_back(i);
    end();
}

/* At each place where they allocate, and again when there is memory. */
CASE(refused_memory_is_null_and_hurts_nothing) {
    begin();
    for (size_t i = 0; i < MANY; i++) {
        counted_fail_after(0);
        if (!take(i)) {
            assert_false(take(i));
            counted_fail_after(-1);
            assert_true(take(i));
        }
    }
    for (size_t i = 0; i < MANY; i++)
        give_back(i);
    assert_int_equal(counted_live(), kept());
    end();
}

/* --- An allocator that gives nothing back to the system ----------------------------------------------------------- */

static char *arena;
static size_t arena_used;
enum { ARENA = 16 * 1024 * 1024 };

static void *arena_resize(void *block, size_t size) {
    assert_null(block);
    block = arena + arena_used;
    arena_used += (size + 15) / 16 * 16;
    assert_true(arena_used <= ARENA);
    return block;
}

static void arena_release(void *block) {
    (void)block;
}

static size_t arena_resident(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    static unsigned char pages[ARENA / 4096];
    assert_int_equal(mincore(arena, ARENA, pages), 0);
    for (size_t i = 0; i < ARENA / page; i++)
        count += pages[i] & 1;
    return count * page;
}

CASE(an_empty_slab_is_not_resident) {
    arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(arena != MAP_FAILED);
    assert_int_equal(evlock_set_allocator(arena_resize, arena_release), EVLOCK_OK);
    evl_slabs_init(&slabs, SIZE, ALONE);
    take_all(MANY);
    assert_true(arena_resident() >= MANY * SIZE);
    for (size_t i = 0; i < MANY; i++)
        give_back(i);
    if (!EVL_MEMORY_WATCHED) /* but for the spare one, and the pages at the ends of the others */
        assert_true(arena_resident() < (size_t)MANY * SIZE / 3);
    evl_slabs_free(&slabs);
    assert_int_equal(munmap(arena, ARENA), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_first_are_by_themselves, counted_teardown),
        cmocka_unit_test_teardown(the_others_share_slabs, counted_teardown),
        cmocka_unit_test_teardown(they_come_back_in_any_order, counted_teardown),
        cmocka_unit_test_teardown(an_empty_slab_goes_while_others_are_in_use, counted_teardown),
        cmocka_unit_test_teardown(what_came_back_is_taken_before_more_memory, counted_teardown),
        cmocka_unit_test_teardown(one_more_and_one_less_takes_no_memory, counted_teardown),
        cmocka_unit_test_teardown(refused_memory_is_null_and_hurts_nothing, counted_teardown),
        cmocka_unit_test_teardown(an_empty_slab_is_not_resident, counted_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
