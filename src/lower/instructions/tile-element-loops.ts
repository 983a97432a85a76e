/**
 * Loops over the elements of fragments (tiles distributed over threads) become loops over the slots of each thread; the memory's map gives
 * the coordinates. Elements that several threads hold are computed by each, and stored by one. A loop may also access a smaller fragment
 * if the same thread holds its elements (one value per row). Opaque tiles (WMMA fragments) can only be filled.
 */

import type { Lanes } from '../../analysis/instructions/lane-groups.ts'
import { linear } from '../../analysis/integers/linear.ts'
import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { builtin, div, type Expr, int, mod, variable } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { LANE, type Memory, SLOT, type TileText } from '../../ir/instructions/instr.ts'
import { type CallPiece, instrCall } from '../../ir/instructions/instr-call.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { redirectAccesses, substituteStmts } from '../../ir/statements/bindings.ts'
import type { Buffer, For, Stmt, Store } from '../../ir/statements/loops.ts'
import { forLoop, when } from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { TileAccess } from './register-fragments.ts'
import { combines, physical, reject, rejectOrder, sameElements } from './register-fragments.ts'

interface ElementAccess extends TileAccess {
  readonly written: boolean
}

export function elementLoops(
  lanes: Lanes,
  buffers: ReadonlyMap<string, Buffer>,
  loops: ReadonlyMap<string, For>,
  names: Names,
) {
  /** Throws `schedule/across-lanes` for a statement that uses a single element of a tile on its own. */
  const rejectPartialAccess = (s: Stmt): never => rejectOrder(s, accessesIn([s]), loops)
  /** Returns true for a loop over elements of a tile, or a statement that uses tiles of one element. */
  const has = (s: Stmt): boolean => {
    const accesses = accessesIn([s])
    if (s.kind === 'for') return accesses.some((a) => along(a).includes(s.var))
    return accesses.length > 0 && accesses.every((a) => a.memory.shape.every((n) => n === 1))
  }
  const memoryOf = (buffer: string): Memory | undefined =>
    lanes.buffers.has(buffer) ? buffers.get(buffer)?.memory : undefined
  const accessesIn = (body: Body): readonly ElementAccess[] =>
    accessesOf(body).flatMap((a) => {
      const memory = memoryOf(a.buffer)
      const here = memory && !a.path.some((l) => l.mode.kind === 'instr')
      return here ? [{ index: a.index, memory, written: a.mode === 'write' }] : []
    })
  const lower = (root: Stmt): Stmt => {
    const accesses = accessesIn([root])
    const memory = largest(accesses)
    const dims = walkers(root, accesses, memory)
    const slot = names.fresh('slot')
    const here = new Map([
      [LANE, laneOf(memory)],
      [SLOT, variable(slot)],
    ])
    const elements = memory.element.map((e) => substitute(e, here))
    const tiles = new Map<string, string>()
    const values = new Map<string, Expr>()
    const starts = new Map<string, Expr>()
    walkStmts([root], (s) => {
      if (s.kind === 'for' && s.mode.kind === 'instr') reject(s, 'an instruction stands among elements')
      const d = s.kind === 'for' ? dims.get(s.var) : undefined
      if (s.kind !== 'for' || d === undefined) return
      const t = memory.shape[d]!
      if (s.reduce && combines(s))
        reject(s, `${s.name} combines elements of ${memory.name} that different threads hold`)
      if (s.extent.kind !== 'const' || s.extent.value % t !== 0)
        reject(s, `${s.name} does not go through whole tiles of ${memory.name}`)
      const element = elements[d]
      if (s.extent.value === t) {
        if (element) values.set(s.var, element)
        starts.set(s.var, int(0))
      } else {
        const tile = names.fresh(s.var)
        tiles.set(s.var, tile)
        const start: Expr = { kind: 'binary', op: 'mul', a: variable(tile), b: int(t), dtype: 'index' }
        starts.set(s.var, start)
        if (element) values.set(s.var, { kind: 'binary', op: 'add', a: start, b: element, dtype: 'index' })
      }
    })
    const place = (buffer: string, index: readonly Expr[]): readonly Expr[] | undefined => {
      const m = memoryOf(buffer)
      if (!m) return undefined
      const own = m.opaque ? int(0) : slotIn(m, memory, walked({ index, memory: m }, dims), variable(slot))
      if (!own) reject(root, `elements in ${memory.name} and in ${m.name} are held by different threads`)
      const start = index.map((e) => substitute(e, starts))
      return physical(start, m, own)
    }
    const placed = redirectAccesses([root], ({ buffer, index }) => {
      const to = place(buffer, index)
      return to && { buffer, index: to }
    })
    const body = memory.opaque
      ? rewriteStmts([root], { stmt: (s) => filled(s, memory.opaque!.fills, dims, place) })
      : substituteStmts(owned(placed, memory), values)
    const over = rewriteStmts(body, {
      stmt: (s) => {
        if (s.kind !== 'for' || !dims.has(s.var)) return undefined
        const tile = tiles.get(s.var)
        if (tile === undefined) return s.body
        const count = (s.extent.kind === 'const' ? s.extent.value : 1) / memory.shape[dims.get(s.var)!]!
        return stmt<For>({ ...s, var: tile, extent: int(count), mode: { kind: 'unroll', factor: null } })
      },
    })
    return forLoop(slot, int(memory.size), over, {
      name: 'slot',
      nest: root.kind === 'for' ? root.nest : memory.name,
      mode: { kind: 'unroll', factor: null },
      span: root.span,
    })
  }
  /** Maps each loop variable that runs over elements to an index of the tile dimensions. */
  const walkers = (
    root: Stmt,
    accesses: readonly ElementAccess[],
    memory: Memory,
  ): ReadonlyMap<string, number> => {
    const dims = new Map<string, number>()
    const all = accesses.filter((a) => sameElements(a.memory, memory))
    for (const a of all)
      along(a).forEach((v, d) => {
        if (memory.shape[d] === 1) return
        if (v === undefined || (dims.has(v) && dims.get(v) !== d)) rejectOrder(root, all, loops)
        dims.set(v, d)
      })
    if (dims.size !== memory.shape.filter((n) => n > 1).length)
      reject(root, `elements of one tile of ${memory.name} meet that are held by different threads`)
    for (const a of accesses) {
      if (all.includes(a)) continue
      const isSameShape = walked(a, dims).every(
        (d, k) => a.memory.shape[k] === (d === undefined ? 1 : memory.shape[d]),
      )
      if (a.written || !isSameShape)
        reject(root, `elements in ${memory.name} and in ${a.memory.name} are held by different threads`)
    }
    return dims
  }
  /** If a statement stores from a tile to other memory, only one of the threads that hold the element runs it. */
  const owned = (body: Body, memory: Memory): Body => {
    const { owner } = memory
    if (!owner) return body
    const cond = substitute(owner, new Map([[LANE, laneOf(memory)]]))
    const inTile = (buffer: string): boolean => memoryOf(buffer) !== undefined
    return rewriteStmts(body, {
      stmt: (s) => {
        const targets = s.kind === 'store' ? [s] : s.kind === 'reduce' ? s.targets : []
        return targets.every((t) => inTile(t.buffer)) ? undefined : when(cond, [s])
      },
    })
  }
  /** Rewrites the store of one value to all elements of an opaque tile as its fill; undefined for a loop. */
  const filled = (
    s: Stmt,
    fills: readonly TileText[],
    dims: ReadonlyMap<string, number>,
    place: ElementIndex,
  ): Stmt | undefined => {
    if (s.kind === 'for') {
      const varies = s.guards.find((g) => [...dims.keys()].some((v) => mentions(g, v)))
      if (varies) rejectOpaqueTile(s, `whether elements of a tile are filled depends on them`)
      return undefined
    }
    const index = s.kind === 'store' ? place(s.buffer, s.index) : undefined
    const b = s.kind === 'store' ? buffers.get(s.buffer) : undefined
    const one = s.kind === 'store' && [...dims.keys()].every((v) => !mentions(s.value, v))
    const memory = b?.memory
    if (s.kind !== 'store' || !index || !memory || !one || readsTiles(s, lanes))
      return rejectOpaqueTile(s, `elements of a tile are seen by instructions alone`)
    if (fills.length === 0) return rejectOpaqueTile(s, `${memory.name} does not say how a tile is filled`)
    const tile: CallPiece = { kind: 'slot', buffer: s.buffer, index, mode: 'write' }
    const value: CallPiece = { kind: 'value', value: s.value }
    return instrCall({
      instr: memory.name,
      threads: memory.threads,
      texts: fills.map((t) => ({
        target: t.target,
        from: 0,
        needs: t.needs,
        pieces: [tile, ' = ', ...t.parts.flatMap((p, k): CallPiece[] => (k > 0 ? [value, p] : [p])), ';'],
      })),
      span: memory.span,
    })
  }
  return { rejectPartialAccess, has, lower }
}

const laneOf = ({ threads }: Memory): Expr => (threads === 1 ? int(0) : builtin('thread.x'))

/** The tile with the most dimensions, written ones first. Its elements determine the loop over slots. */
const largest = (accesses: readonly ElementAccess[]): Memory =>
  accesses.toSorted((x, y) => y.memory.shape.length - x.memory.shape.length || +y.written - +x.written)[0]!
    .memory

/** For each dimension of a tile, the dimension of the largest tile that the same loop walks; undefined if none. */
const walked = (a: TileAccess, dims: ReadonlyMap<string, number>) =>
  along(a).map((v) => (v === undefined ? undefined : dims.get(v)))

/**
 * The slot of tile `m` with the element that corresponds to `slot` of tile `all`: a digit of `slot` that is identical in every thread.
 * `undefined` if another thread holds it.
 */
function slotIn(
  m: Memory,
  all: Memory,
  walks: readonly (number | undefined)[],
  slot: Expr,
): Expr | undefined {
  if (sameElements(m, all)) return slot
  if (m.threads !== all.threads) return undefined
  const lanes = Array.from({ length: m.threads }, (_, lane) => lane)
  const at = (x: Memory, lane: number, k: number): readonly number[] => {
    const values = new Map([
      [LANE, lane],
      [SLOT, k],
    ])
    return x.element.map((e) => evaluate(e, values))
  }
  const slots = Array.from({ length: all.size }, (_, k) => {
    const wanted = lanes.map((lane) => {
      const c = at(all, lane, k)
      return walks.map((d) => (d === undefined ? 0 : c[d]!)).join()
    })
    for (let t = 0; t < m.size; t++) if (lanes.every((l) => at(m, l, t).join() === wanted[l])) return t
    return undefined
  })
  for (let a = 1; a <= all.size; a++)
    for (let b = 1; b <= all.size; b++)
      if (slots.every((t, k) => t === Math.floor(k / a) % b)) return mod(div(slot, int(a)), int(b))
  return undefined
}

type ElementIndex = (buffer: string, index: readonly Expr[]) => readonly Expr[] | undefined

/** The loop variable that walks along each dimension of the tile; undefined if none. */
function along({ index, memory }: TileAccess): readonly (string | undefined)[] {
  const at = index.length - memory.shape.length
  return memory.shape.map((t, d) => {
    const inside = [...linear(index[at + d]!).terms.values()].filter((x) => x.coefficient % t !== 0)
    const [only] = inside
    return inside.length === 1 && only?.coefficient === 1 && only.term.kind === 'var'
      ? only.term.name
      : undefined
  })
}

const readsTiles = (s: Store, lanes: Lanes): boolean =>
  accessesOf([s]).some((a) => a.mode !== 'write' && lanes.buffers.has(a.buffer))

function rejectOpaqueTile(s: Stmt, why: string): never {
  return failAt('schedule/opaque-tile', s.span, {
    message: why,
    expected: 'the same number for every element, or loops that `tensorize` gives to an instruction',
    hint: 'tensorize the copies to and from the tile',
  })
}
