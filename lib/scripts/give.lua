-- Included at the end of scripts that give the lock up, which is theirs to give: it goes to the first in the queue who
-- listens, else to nobody. KEYS: lock, queue, fence counter.
-- 1, or an error.
if redis.pcall('EXISTS', KEYS[2]) == 0 then return redis.pcall('DEL', KEYS[1]) end
--@ include grant.lua
-- Whatever stands in the way of a grant, the lock is free then, and its waiters find it by themselves.
if type(grant(nil)) == 'string' then return 1 end
local freed = redis.pcall('DEL', KEYS[1]) -- 0, where a grant that could not be told has freed it
return type(freed) == 'table' and freed or 1
