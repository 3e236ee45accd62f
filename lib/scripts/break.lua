-- Gives the lock up by force, if what holds it has this mark (see mark.lua): to the first in the queue who listens,
-- else to nobody.
-- KEYS: lock, and, if it has a queue, that and its fence counter. ARGV: mark; and, if it has a queue, the clock, if it
-- is brought (see clock.lua).
-- 1: given up. 2: as well, though to nobody, as the clock could not be read. 0: something else holds it, or nothing.
--@ include mark.lua
local call, brought = redis.pcall, ARGV[2]
local found = call('GET', KEYS[1])
if type(found) == 'table' then return found end
if not found or mark(found) ~= ARGV[1] then return 0 end
if #KEYS == 1 then return call('DEL', KEYS[1]) end
--@ include give.lua
