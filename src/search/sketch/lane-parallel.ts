/** Several threads for each element: a reduction is dealt out to them, and their sums are combined at its end. */
import type { ThreadAxis } from '../../ir/expr.ts'
import { someExpr } from '../../ir/expr-tree.ts'
import { exprsOf } from '../../ir/tree.ts'
import type { Plan } from './plan.ts'
import type { Strand, StrandLoop } from './strands.ts'
import {
  type Around,
  atMost,
  type BlockShape,
  chooseAhead,
  type Dealt,
  isRagged,
  lanesGuess,
  requireOf,
  WARP,
  within,
} from './threads.ts'

export function laneParallel(strand: Strand, of: Dealt, around: Around, shape: BlockShape): Plan {
  const last = of.sums.at(-1)!
  // Over a size, and the same for all: what it reads lies side by side.
  return last.needs.size === 0 && of.inner?.role !== 'contiguous'
    ? features(strand, of, last, around, shape)
    : segments(strand, of, of.sums[0]!, around, shape)
}

const GROUPS = [2, 4, 8, 16, 32, 64, 128, 256]

/** Distributes the elements of a segment over groups of threads; each thread of a group has a part of the contiguous loop. */
function segments(
  strand: Strand,
  of: Dealt,
  sum: StrandLoop,
  around: Around,
  { name: block, isMixed }: BlockShape,
): Plan {
  const { lead, outer, sums } = of
  // What lies in a segment is not dealt out over blocks.
  const inner = of.inner && of.inner.needs.size === 0 ? of.inner : undefined
  const middle = of.inner === inner ? of.middle : [...of.middle, of.inner!]
  const d = around.decisions
  const { name } = strand
  const rest = sums.filter((l) => l !== sum)
  const ragged = isRagged(middle)
  const alone = isMixed || (ragged && !around.apart)
  const rows = alone ? 1 : d.choose(`${block}.rows`, [1, 2, 4, 8, 16, 32], inner ? 4 : 8)
  const room = around.threads / rows / (inner ? 4 : 1)
  const counts = within(GROUPS, ragged ? Math.min(room, WARP) : room)
  // Where others have rows or threads, a block's row is theirs.
  const called = isMixed ? (inner ? 'rows' : 'threads') : 'groups'
  const groups = d.choose(`${block}.${called}`, counts, atMost(counts, inner ? 4 : 16))
  const widths = within([4, 8, 16, 32], around.threads / rows / groups)
  const lanes = inner ? d.choose(`${block}.lanes`, widths, lanesGuess(widths, inner, around, 8)) : 1
  const each = inner ? d.choose(`${name}.each`, [1, 2, 4], 4) : 1
  // Neighbours exchange registers, others combine over shared memory.
  const orders = isMixed ? ['lanes'] : ['groups', 'lanes']
  const order = inner && !ragged ? d.choose(`${block}.neighbours`, orders) : 'groups'
  const ahead = chooseAhead(name, d)
  return (draft) => {
    if (inner) requireOf(draft, inner, each, around)
    const row = rows > 1 ? draft.split(outer.var, rows) : ([outer.var, undefined] as const)
    const strip = inner ? draft.split(inner.var, lanes * each) : undefined
    const [lane, vector] = strip && each > 1 ? draft.split(strip[1], each) : [strip?.[1], undefined]
    const [turns, group] = draft.split(sum.var, groups)
    const innermost = sums.at(-1) === sum ? turns : sums.at(-1)!.var
    const [inside, below] = [middle, rest].map((of) => of.map((l) => l.var))
    draft.reorder([lead?.var, row[0], strip?.[0], row[1], ...inside!, group, lane, turns, ...below!, vector])
    const at = (loop: string | undefined, to: ThreadAxis) => (loop === undefined ? [] : [[loop, to] as const])
    draft.bind([
      ...at(lead?.var, 'block.z'),
      [row[0], 'block.x'],
      ...at(strip?.[0], 'block.y'),
      ...at(row[1], inner ? 'thread.z' : 'thread.y'),
      [group, order === 'groups' ? 'thread.x' : 'thread.y'],
      ...at(lane, order === 'groups' ? 'thread.y' : 'thread.x'),
    ])
    return {
      whole: undefined,
      finish(late) {
        if (vector !== undefined) late.unroll(vector, 0)
        late.unroll(innermost, ahead.by, ahead.predicated)
      },
    }
  }
}

/** True if each thread locates its element by a binary search: a dozen dependent reads. */
const isSearched = ({ writes }: Strand): boolean =>
  writes.some((w) => exprsOf(w).some((e) => someExpr(e, (x) => x.kind === 'search')))

/** A dot product for a few threads, each with vectors of it; several of them under way in a thread. */
function features(
  strand: Strand,
  of: Dealt,
  sum: StrandLoop,
  around: Around,
  { name: block }: BlockShape,
): Plan {
  const { lead, outer, middle, sums, inner } = of
  const d = around.decisions
  const { name } = strand
  const lanes = d.choose(`${block}.lanes`, [2, 4, 8, 16, 32], isSearched(strand) ? 4 : 8)
  const counts = within([1, 2, 4, 8, 16, 32], around.threads / lanes)
  const ragged = isRagged([...middle, ...(inner ? [inner] : [])])
  const alone = ragged && !around.apart
  const rows = alone ? 1 : d.choose(`${block}.rows`, counts, atMost(counts, 16))
  const per = d.choose(`${name}.per`, [1, 2, 4])
  const each = d.choose(`${name}.each`, [1, 2, 4], 4)
  const spatial = [...middle, ...(inner ? [inner] : [])].filter((l) => l.constant !== 1)
  const rest = [...middle, ...(inner ? [inner] : []), ...sums].filter(
    (l) => l !== sum && !spatial.includes(l),
  )
  const given = sum.size === null ? undefined : around.sizes.get(sum.size)
  const exact =
    given !== undefined && given > 0 && d.choose(`${name}.${sum.size}`, ['constant', 'any']) === 'constant'
  return (draft) => {
    if (exact) draft.step({ kind: 'require', size: sum.size!, relation: 'equal', by: given })
    else requireOf(draft, sum, each, around)
    // Neighbours of a segment read the same on one side; else they are neighbours of the outer loop.
    const segment = ragged ? spatial.at(-1)?.var : undefined
    const [blocks, share] = draft.split(outer.var, segment === undefined ? rows * per : rows)
    const shared = per > 1 && segment === undefined
    const [row, turn] = shared ? draft.split(share, per) : ([share, undefined] as const)
    const [turns, strip] = draft.split(sum.var, lanes * each)
    const [lane, vector] = each > 1 ? draft.split(strip, each) : ([strip, undefined] as const)
    const [inside, below] = [spatial, rest].map((of) => of.map((l) => l.var))
    draft.reorder([lead?.var, blocks, row, ...inside!, turn, lane, ...below!, turns, vector])
    draft.bind([
      ...(lead ? [[lead.var, 'block.z'] as const] : []),
      [blocks, 'block.x'],
      [row, 'thread.y'],
      [lane, 'thread.x'],
    ])
    return {
      whole: undefined,
      finish(late) {
        if (vector !== undefined) late.unroll(vector, 0)
        if (exact && given / (lanes * each) <= 16) late.unroll(turns, 0)
        if (turn !== undefined) late.unroll(turn, 0)
        if (segment !== undefined) late.unroll(segment, per)
      },
    }
  }
}
