"""evlock and locks on asyncio on the same keys: the one of redis-py, and the common small class with a renewing task."""

import asyncio
import uuid

import peer
from peer import EXPIRED, HELD, NOT_OWNED, OK, Peer, redis

PREFIX = "distributed_lock:"


class DistributedLock:
    """A lock as asyncio programs often write it: a prefixed key, tries with pauses between, renewal by a task."""

    COMPARE = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "

    def __init__(self, server, name, timeout=30, retry_times=0, retry_delay=0.02, auto_renewal=False):
        self.server, self.key, self.timeout = server, PREFIX + name, timeout
        self.retry_times, self.retry_delay, self.auto_renewal = retry_times, retry_delay, auto_renewal
        self.identifier = str(uuid.uuid4())
        self.renewal = None

    async def acquire(self):
        for attempt in range(self.retry_times + 1):
            if attempt:
                await asyncio.sleep(self.retry_delay)
            if await self.server.set(self.key, self.identifier, nx=True, ex=self.timeout):
                if self.auto_renewal:
                    self.renewal = asyncio.create_task(self._renew())
                return True
        return False

    async def _renew(self):
        while await self.extend():
            await asyncio.sleep(self.timeout / 3)

    async def _if_mine(self, then, *arguments):
        return bool(await self.server.eval(self.COMPARE + then, 1, self.key, self.identifier, *arguments))

    async def extend(self, additional=None):
        return await self._if_mine("return redis.call('EXPIRE', KEYS[1], ARGV[2])", additional or self.timeout)

    async def release(self):
        if self.renewal:
            self.renewal.cancel()
            await asyncio.gather(self.renewal, return_exceptions=True)
        return await self._if_mine("return redis.call('DEL', KEYS[1])")

    async def is_locked_by_me(self):
        return await self.server.get(self.key) == self.identifier.encode()

    async def is_locked_by_anyone(self):
        return await self.server.exists(self.key) == 1

    async def __aenter__(self):
        if not await self.acquire():
            raise RuntimeError("not acquired")
        return self

    async def __aexit__(self, *_):
        await self.release()


def on_asyncio(test):
    """A test that is a coroutine, with a connection to the server."""

    async def run(context):
        async with redis.asyncio.Redis(unix_socket_path=context.server.path) as server:
            await test(context, server)

    def run_all(context):
        asyncio.run(run(context))

    run_all.__name__ = test.__name__
    return run_all


def in_thread(call, *arguments):
    """Waits for something of evlock's side that asyncio's side must go on for."""
    return asyncio.get_running_loop().run_in_executor(None, call, *arguments)


# --- The asyncio lock of redis-py ---


@on_asyncio
async def test_each_holds_the_other_off(context, server):
    theirs, ours = server.lock("job", timeout=60), Peer(context, "job")
    assert await theirs.acquire(blocking=False)
    assert ours.do("try") == HELD and ours.ask("locked") == 1
    await theirs.release()
    assert ours.do("try") == OK
    assert not await theirs.acquire(blocking=False)
    assert await theirs.locked() and not await theirs.owned()
    assert ours.do("release") == OK
    assert await theirs.acquire(blocking=False)
    await theirs.release()


@on_asyncio
async def test_each_waits_for_the_other(context, server):
    theirs, ours = server.lock("job", timeout=60, sleep=0.02), Peer(context, "job")
    assert await theirs.acquire()
    assert ours.call("acquire") == OK
    await asyncio.sleep(0.2)
    assert not ours.held()
    await theirs.release()
    assert (await in_thread(ours.end, "acquire"))[0] == OK
    waiting = asyncio.create_task(theirs.acquire())
    await asyncio.sleep(0.2)
    assert not waiting.done()
    assert ours.do("release") == OK
    assert await waiting
    await theirs.release()


@on_asyncio
async def test_each_takes_the_others_lease_over(context, server):
    theirs, ours = server.lock("job", timeout=60), Peer(context, "job")
    assert await theirs.acquire()
    assert ours.do("adopt", theirs.local.token.decode()) == OK
    assert ours.do("extend", 600000) == OK
    assert context.server.command("PTTL", "job") > 500000
    theirs.local.token = ours.export().encode()
    assert await theirs.extend(600)
    assert context.server.command("PTTL", "job") > 1100000
    assert ours.ask("locked") == 1
    await theirs.release()
    assert ours.ask("locked") == 0


@on_asyncio
async def test_each_takes_what_the_other_let_expire(context, server):
    theirs, ours = server.lock("job", timeout=0.5, sleep=0.02), Peer(context, "job", ttl=500)
    assert ours.do("acquire") == OK
    assert await theirs.acquire()
    assert ours.lost() == EXPIRED
    assert ours.do("acquire") == OK
    try:
        await theirs.release()
        raise AssertionError("it is evlock's")
    except redis.exceptions.LockNotOwnedError:
        pass
    assert ours.do("release") in (OK, NOT_OWNED)


# --- The small class ---


@on_asyncio
async def test_the_prefix_makes_one_lock_of_both(context, server):
    theirs, ours = DistributedLock(server, "job"), Peer(context, PREFIX + "job")
    async with theirs:
        assert await theirs.is_locked_by_me()
        assert ours.do("try") == HELD and ours.ask("locked") == 1
    assert ours.do("try") == OK
    assert not await theirs.acquire()
    assert await theirs.is_locked_by_anyone() and not await theirs.is_locked_by_me()
    assert not await theirs.release(), "not theirs to release"
    assert ours.held() and ours.ask("owned") == 1
    assert ours.do("release") == OK
    async with theirs:
        pass


@on_asyncio
async def test_the_class_waits_for_evlock(context, server):
    theirs, ours = DistributedLock(server, "job", retry_times=100000), Peer(context, PREFIX + "job")
    assert ours.do("acquire") == OK
    waiting = asyncio.create_task(theirs.acquire())
    await asyncio.sleep(0.2)
    assert not waiting.done()
    assert ours.do("release") == OK
    assert await waiting and await theirs.release()


@on_asyncio
async def test_the_class_renews_and_evlock_waits(context, server):
    theirs, ours = DistributedLock(server, "job", timeout=2, auto_renewal=True), Peer(context, PREFIX + "job")
    assert await theirs.acquire()
    assert ours.call("acquire") == OK
    await asyncio.sleep(3)
    assert await theirs.is_locked_by_me() and not ours.held()
    assert await theirs.release()
    assert (await in_thread(ours.end, "acquire"))[0] == OK
    assert ours.do("release") == OK


@on_asyncio
async def test_the_class_and_evlock_hand_a_lease_over(context, server):
    theirs, ours = DistributedLock(server, "job"), Peer(context, PREFIX + "job")
    assert await theirs.acquire()
    assert ours.do("adopt", theirs.identifier) == OK
    assert ours.do("extend", 600000) == OK
    assert ours.do("release") == OK
    assert not await theirs.release() and not await theirs.extend()
    assert ours.do("acquire") == OK
    theirs.identifier = ours.export()
    assert await theirs.extend(600)
    assert context.server.command("PTTL", PREFIX + "job") > 500000
    assert await theirs.release()


@on_asyncio
async def test_the_class_takes_what_evlock_let_expire(context, server):
    theirs, ours = DistributedLock(server, "job", retry_times=100000), Peer(context, PREFIX + "job", ttl=500)
    assert ours.do("acquire") == OK
    assert await theirs.acquire()
    assert ours.lost() == EXPIRED
    assert ours.do("release") == NOT_OWNED
    assert await theirs.is_locked_by_me(), "the new holder is left alone"
    assert await theirs.release()


@on_asyncio
async def test_evlock_takes_what_the_class_let_expire(context, server):
    theirs, ours = DistributedLock(server, "job", timeout=1), Peer(context, PREFIX + "job")
    assert await theirs.acquire()
    assert (await in_thread(ours.do, "acquire")) == OK
    assert not await theirs.extend() and not await theirs.release()
    assert ours.held()
    assert ours.do("release") == OK


peer.main(globals())
