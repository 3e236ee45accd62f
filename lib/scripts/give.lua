-- Included at the end of scripts that give the lock up, which is theirs to give: it goes to the first in the queue who
-- listens, else to nobody. KEYS: lock, queue, fence counter. `brought`: the clock, if it is brought (see clock.lua).
-- 1, or an error. 2: it went to nobody, as the clock could not be read.
--@ include grant.lua
-- Whatever stands in the way of a grant, the lock is free then, and its waiters find it by themselves.
local given = grant(nil, brought, brought)
if type(given) == 'string' then return 1 end
local freed = call('DEL', KEYS[1]) -- 0, where a grant that could not be told has freed it
if type(freed) == 'table' then return freed end
return given and string.find(given.err, '^-?NOCLOCK') and 2 or 1
