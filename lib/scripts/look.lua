-- Tells what holds the lock, whatever it is, for the break that may follow. KEYS: lock.
-- Its mark (see mark.lua). nil: nobody has the lock.
--@ include mark.lua
local found = redis.pcall('GET', KEYS[1])
return type(found) == 'string' and mark(found) or found
