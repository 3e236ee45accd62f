-- Gives the lock back if it holds the token: to the first in the queue who listens, else to nobody. What does not hold
-- it leaves the queue.
-- KEYS: lock, queue, fence counter. ARGV: token, and its waiter (see grant.lua) if it may wait; and the clock, if it is
-- brought (see clock.lua): then behind an empty waiter, if there is none.
-- 1: given back. 2: as well, though to nobody, as the clock could not be read. 0: the token is not there, and does not
-- wait.
local call, brought = redis.pcall, ARGV[3]
local found = call('GET', KEYS[1])
if found ~= ARGV[1] then
  local left = ARGV[2] and call('ZREM', KEYS[2], ARGV[2])
  if type(found) == 'table' then return found end
  if type(left) == 'table' and not string.find(left.err, '^WRONGTYPE') then return left end
  return 0
end
--@ include give.lua
