-- Included at the end of scripts that give the lock up, which is theirs to give: it goes to the first in the queue who
-- listens, else to nobody. KEYS: lock, queue, fence counter. `brought`: see reason.lua.
-- 1, or an error. 2: it went to nobody, as the clock could not be read.
if redis.pcall('EXISTS', KEYS[2]) == 0 then return redis.pcall('DEL', KEYS[1]) end
--@ include grant.lua
-- Whatever stands in the way of a grant, the lock is free then, and its waiters find it by themselves.
local given = grant(nil)
if type(given) == 'string' then return 1 end
local freed = redis.pcall('DEL', KEYS[1]) -- 0, where a grant that could not be told has freed it
if type(freed) == 'table' then return freed end
return given and string.find(given.err, '^-?NOCLOCK') and 2 or 1
