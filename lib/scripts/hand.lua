-- Gives the lock back if it holds the token: to the first in the queue who listens, else to nobody. What does not hold
-- it leaves the queue. KEYS: lock, queue, fence counter. ARGV: token, and its waiter (see grant.lua) if it may wait.
-- 1: given back. 0: the token is not there, and does not wait.
local found = redis.pcall('GET', KEYS[1])
if found ~= ARGV[1] then
  local left = ARGV[2] and redis.pcall('ZREM', KEYS[2], ARGV[2])
  if type(found) == 'table' then return found end
  if type(left) == 'table' and not string.find(left.err, '^WRONGTYPE') then return left end
  return 0
end
if redis.pcall('EXISTS', KEYS[2]) == 0 then return redis.pcall('DEL', KEYS[1]) end
--@ include grant.lua
-- Whatever stands in the way of a grant, the lock is free then, and its waiters find it by themselves.
if type(grant(nil)) == 'string' then return 1 end
local freed = redis.pcall('DEL', KEYS[1]) -- 0, where a grant that could not be told has freed it
return type(freed) == 'table' and freed or 1
