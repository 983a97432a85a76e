/** Memory accesses of statements: buffer elements read and written. */
import { readByEdge } from '../coordinates/rounds.ts'
import type { Expr, Load } from '../expressions/expr.ts'
import { readsMemory, walkExpr } from '../expressions/expr-tree.ts'
import { memoize } from '../memoize.ts'
import type { Buffer, For, PlanStep, Stmt, Store } from './loops.ts'
import { type Body, bodiesOf, exprsOf, piecesOf, walkStmts } from './tree.ts'

/**
 * True for buffers that no kernel writes: inputs and the arrays of axes. A register that holds a position is written.
 */
export const isReadOnly = (b: Buffer): boolean =>
  b.scope !== 'register' && (b.role === 'in' || b.role === 'index')

/** True for the boundaries of an axis' segments; binding validates that they ascend. */
export const isOffsets = (b: Buffer): boolean => b.positions !== undefined

export const offsetsIn = memoize(
  (buffers: readonly Buffer[]): ReadonlySet<string> => new Set(buffers.filter(isOffsets).map((b) => b.name)),
)

export interface BufferAccess {
  readonly buffer: string
  /** Empty for a whole-buffer `fill`; a search is a read with no index. */
  readonly index: readonly Expr[]
  readonly mode: 'read' | 'write'
  /** `whole`: a fill, or a search over a range. */
  readonly whole: boolean
  readonly stmt: Stmt
  /** The loops around the statement, outermost first, within the walked body. */
  readonly path: readonly For[]
}

/**
 * Every access in evaluation order; a load that is shared within a statement appears once. A reduction's targets are
 * listed as writes only, although it reads them too. Loads in loop extents, guards and conditions are listed as reads.
 * `only`: restricts the result to these buffers.
 */
export function accessesOf(body: Body, only?: ReadonlySet<string>): readonly BufferAccess[] {
  const out: BufferAccess[] = []
  walkStmts(body, (s, path) => {
    for (const { buffer, index, mode, whole } of accessesOfStatement(s))
      if (!only || only.has(buffer)) out.push({ buffer, index, mode, whole, stmt: s, path })
  })
  return out
}

type StatementAccess = Omit<BufferAccess, 'stmt' | 'path'>

/**
 * Accesses of the statement itself, without nested statements. Cached, because passes query the same statements
 * repeatedly.
 */
const accessesOfStatement = memoize((s: Stmt): readonly StatementAccess[] => {
  const out: StatementAccess[] = []
  const read = (e: Expr): void => {
    if (e.kind === 'load') out.push({ buffer: e.buffer, index: e.index, mode: 'read', whole: false })
    if (e.kind === 'search') out.push({ buffer: e.buffer, index: [], mode: 'read', whole: true })
  }
  const seen = new Set<Expr>()
  for (const e of exprsOf(s)) if (readsMemory(e)) walkExpr(e, read, seen)
  for (const t of targetsOf(s)) out.push({ buffer: t.buffer, index: t.index, mode: 'write', whole: false })
  if (s.kind === 'fill') out.push({ buffer: s.buffer, index: [], mode: 'write', whole: true })
  if (s.kind === 'rounds')
    for (const buffer of readByEdge(s)) out.push({ buffer, index: [], mode: 'read', whole: true })
  if (s.kind === 'instr')
    for (const p of piecesOf(s)) {
      if (p.kind === 'value' || p.kind === 'index' || p.mode === 'meet') continue
      // An instruction also accesses elements around its address, and which ones only the instruction defines.
      const whole = p.kind !== 'slot' && p.kind !== 'word'
      const access = { buffer: p.buffer, index: whole ? [] : p.index, whole }
      if (p.mode !== 'write') out.push({ ...access, mode: 'read' })
      if (p.mode !== 'read') out.push({ ...access, mode: 'write' })
    }
  return out
})

/** The elements that a statement itself writes, except those of a fill. */
export function targetsOf(s: Stmt): readonly (Load | Store)[] {
  if (s.kind === 'vector_store') return [s.target]
  return s.kind === 'store' ? [s] : s.kind === 'reduce' ? s.targets : []
}

/** Names of the buffers read inside; targets of reductions are not included. */
export const readsOf = (body: Body): ReadonlySet<string> => buffersIn(body, 'read')

/** Names of the buffers written inside: stores, reductions, fills. */
export const writesOf = (body: Body): ReadonlySet<string> => buffersIn(body, 'write')

function buffersIn(body: Body, mode: BufferAccess['mode']): ReadonlySet<string> {
  if (body.length === 1) return buffersInside(body[0]!)[mode]
  const out = new Set<string>()
  for (const s of body) for (const buffer of buffersInside(s)[mode]) out.add(buffer)
  return out
}

/** Names of the buffers that a step of a plan reads and writes. */
export function accessedBy(step: PlanStep): {
  readonly reads: readonly string[]
  readonly writes: readonly string[]
} {
  if (step.kind === 'clear') return { reads: [], writes: [step.buffer] }
  if (step.kind === 'rounds') return { reads: readByEdge(step), writes: [] }
  const { when } = step
  return { reads: [...readsOf(step.body), ...(when ? [when.choice] : [])], writes: [...writesOf(step.body)] }
}

/** Names of the buffers that a statement and those nested in it read or write. */
const buffersInside = memoize((s: Stmt): Readonly<Record<BufferAccess['mode'], ReadonlySet<string>>> => {
  const out = { read: new Set<string>(), write: new Set<string>() }
  for (const access of accessesOfStatement(s)) out[access.mode].add(access.buffer)
  for (const body of bodiesOf(s))
    for (const inner of body)
      for (const mode of ['read', 'write'] as const)
        for (const buffer of buffersInside(inner)[mode]) out[mode].add(buffer)
  return out
})
