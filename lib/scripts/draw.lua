-- Included where a waiter is given its fence: `fence` is the next one then, as text, and kept; and behind it, if there
-- are any, how many are drawn for those to whom its holder passes the lock on (see fence.lua). KEYS: lock, queue, fence
-- counter. `us`: the server's clock in microseconds, as text. `ticket`: the waiter's.
--@ include fence.lua
local drawn, spare = next_fence(KEYS[3], tonumber(us), 1, tonumber(string.match(ticket, '%+(%d+)$')) or 0)
if type(drawn) == 'table' then return drawn end
local last = string.format('%.0f', drawn + spare)
local kept = call('SET', KEYS[3], last, 'PX', '@FENCE_TTL_MS@')
if kept.err then return kept end
fence = spare > 0 and string.format('%.0f %.0f', drawn, spare) or last
