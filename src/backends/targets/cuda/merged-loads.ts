/**
 * Read-only cache loads (`ld.global.nc`) that NVVM may merge with loads of updated memory. NVVM 13.0 merges two loads at a
 * join by selecting the address (`c ? W[j] : Q[p]`, or `x = Q[p]; if (c) x = W[j]`), and emits `ld.global.nc` if either
 * pointer was `const … __restrict__`. If the launch writes Q, the merged load may return its old value.
 */

import type { Expr } from '../../../ir/expressions/expr.ts'
import { children } from '../../../ir/expressions/expr-tree.ts'
import { targetsOf, writesOf } from '../../../ir/statements/accesses.ts'
import type { Buffer, Launch } from '../../../ir/statements/loops.ts'
import { exprsOf, piecesOf, walkStmts } from '../../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../../ir/values/dtype.ts'

/**
 * Use of a loaded value at a merge point: unchanged (`bare`), or after arithmetic (`computed`). The compiler merges equal
 * operators into one on merged operands, so a bare load never merges with a computed value.
 */
type Use = 'bare' | 'computed'
type Reads = Map<string, Set<Use>>

/**
 * Read-only buffers of a launch whose loads the compiler may merge with loads of a buffer that the launch updates: same load
 * type, and both bare or both computed.
 */
export function buffersMergedWithUpdates(
  { body }: Launch,
  global: ReadonlyMap<string, Buffer>,
): ReadonlySet<string> {
  const written = writesOf(body)
  const reads = usesOf(body, global)
  const kinds = (b: string): readonly string[] => {
    const buffer = global.get(b)
    return buffer ? [...(reads.get(b) ?? [])].map((use) => `${loadType(buffer)} ${use}`) : []
  }
  // The current value of a written buffer may merge with a stored value, without arithmetic.
  for (const b of written) reads.get(b)?.add('bare')
  const updated = new Set([...written].flatMap(kinds))
  return new Set([...reads.keys()].filter((b) => !written.has(b) && kinds(b).some((k) => updated.has(k))))
}

/** Load type as the compiler sees it: the width only, without signedness or the kind of 16-bit float. */
const loadType = ({ dtype }: Buffer): string =>
  dtype === 'f32' || dtype === 'f64' ? dtype : `${8 * DTYPE_BYTES[dtype]} bits`

/** Uses of arrays, registers and names, including indirect ones through other registers and names. */
function usesOf(body: Launch['body'], global: ReadonlyMap<string, Buffer>): Reads {
  const reads: Reads = new Map()
  let changed = true
  const add = (name: string, use: Use): void => {
    const uses = reads.get(name) ?? new Set()
    if (uses.has(use)) return
    reads.set(name, uses.add(use))
    changed = true
  }
  const visited = { bare: new Set<Expr>(), computed: new Set<Expr>() }
  const visit = (e: Expr, use: Use): void => {
    if (visited[use].has(e)) return
    visited[use].add(e)
    if (e.kind === 'var') add(e.name, use)
    if (e.kind === 'load' || e.kind === 'search') add(e.buffer, use)
    const isAccess = e.kind === 'load' || e.kind === 'search'
    // An index is a separate value, which may merge with other indices.
    for (const c of children(e)) visit(c, isAccess ? 'bare' : passesOperand(e) ? use : 'computed')
  }
  const withInherited = (names: readonly string[], direct: readonly Use[]): readonly Use[] => [
    ...new Set([...direct, ...names.flatMap((n) => [...(reads.get(n) ?? [])])]),
  ]
  const indices: Expr[] = []
  const definitions: Definition[] = []
  walkStmts(body, (s) => {
    // Source of an instruction may use an address in any way.
    if (s.kind === 'instr')
      for (const p of piecesOf(s))
        if ('buffer' in p) for (const use of ['bare', 'computed'] as const) add(p.buffer, use)
    const targets = targetsOf(s)
    const names =
      s.kind === 'let' ? [s.name] : s.kind === 'vector_load' ? s.names : targets.map((t) => t.buffer)
    const inRegisters = names.length > 0 && names.every((n) => !global.has(n))
    definitions.push({ exprs: exprsOf(s), names, direct: inRegisters ? [] : ['bare'] })
    for (const t of targets) indices.push(...t.index)
  })
  for (const e of indices) visit(e, 'bare')
  while (changed) {
    changed = false
    for (const { exprs, names, direct } of definitions)
      for (const use of withInherited(names, direct)) for (const e of exprs) visit(e, use)
  }
  return reads
}

/** Expressions of a statement, the names they define, and the uses that hold for any use of these names. */
interface Definition {
  readonly exprs: readonly Expr[]
  readonly names: readonly string[]
  readonly direct: readonly Use[]
}

/**
 * True if the expression may return an operand unchanged, or differ from it by the operand alone: `c ? x : y`, `x + 0`,
 * `int(x)`.
 */
const passesOperand = (e: Expr): boolean =>
  e.kind === 'select' || e.kind === 'cast' || (e.kind === 'binary' && PASSING_OPS.has(e.op))
const PASSING_OPS: ReadonlySet<string> = new Set(['add', 'and', 'or', 'min', 'max'])
