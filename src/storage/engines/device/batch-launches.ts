/**
 * Horizontal fusion of launches: several of one structure as one kernel, blocks one after the other, each with the
 * columns and sizes of its launch. Small launches take their time to begin, not to run.
 */
import { invariant } from '../../../ast/diagnostic.ts'
import { allocatedIn, renameBound, renameBuffer, substituteStmts } from '../../../ir/bindings.ts'
import { type Expr, lt, sub, variable } from '../../../ir/expr.ts'
import type { Stmt } from '../../../ir/loops.ts'
import { when } from '../../../ir/statement-builders.ts'
import { walkStmts } from '../../../ir/tree.ts'
import { type LaunchSpec, THREADS, type Use } from './column-types.ts'

/** Where a launch's threads (or blocks) end among those of all. */
export const END = 'x_end'

const nameOf = (name: string, k: number): string => `${name}_of${k}`

/** The name that a launch gives a column or size, and which launch it is; -1: it is that of all of them. */
export function instanceOf(name: string): { readonly name: string; readonly of: number } {
  const found = /^(.*)_of(\d+)$/.exec(name)
  return found ? { name: found[1]!, of: Number(found[2]) } : { name, of: -1 }
}

/** `count` launches like `spec`; the threads of each begin with a block of `block` of their own. */
export function fused(spec: LaunchSpec, count: number, block: number): LaunchSpec {
  const columns: Record<string, Use> = {}
  const sizes: Record<string, number> = {}
  for (let k = 0; k < count; k++) {
    for (const [name, use] of Object.entries(spec.columns)) columns[nameOf(name, k)] = use
    for (const name of [...Object.keys(spec.sizes ?? {}), THREADS, END]) sizes[nameOf(name, k)] = 0
  }
  return {
    key: spec.key,
    threads: block,
    ...(spec.shared ? { shared: true } : {}),
    columns,
    sizes,
    body: (e) => {
      const memory = new Map<string, Stmt>()
      const instances = Array.from({ length: count }, (_, k) => {
        const at = k === 0 ? e : sub(e, variable(nameOf(END, k - 1)))
        const body = renamed(spec, at, k, memory)
        return spec.shared ? body : [when(lt(at, variable(nameOf(THREADS, k))), body)]
      })
      const chosen = instances.reduceRight<readonly Stmt[]>(
        (rest, body, k) => [when(lt(e, variable(nameOf(END, k))), body, rest)],
        [],
      )
      return [...memory.values(), ...chosen]
    },
  }
}

/** The body of launch `k`. Memory of a block is the same for all launches. */
function renamed(spec: LaunchSpec, at: Expr, k: number, memory: Map<string, Stmt>): readonly Stmt[] {
  let body = spec.body(at)
  const bound = new Map<string, string>()
  const buffers = new Set(Object.keys(spec.columns))
  walkStmts(body, (s) => {
    if (s.kind === 'for') bound.set(s.var, nameOf(s.var, k))
    if (s.kind === 'let') bound.set(s.name, nameOf(s.name, k))
    if (s.kind !== 'alloc') return
    if (s.buffer.scope === 'shared') memory.set(s.buffer.name, s)
    else buffers.add(s.buffer.name)
  })
  body = body.filter((s) => !(s.kind === 'alloc' && s.buffer.scope === 'shared'))
  invariant(allocatedIn(body, 'shared').size === 0, 'memory of a block is declared first')
  for (const name of buffers) body = renameBuffer(body, name, nameOf(name, k))
  const sizes = [...Object.keys(spec.sizes ?? {}), THREADS].map((n) => [n, variable(nameOf(n, k))] as const)
  return substituteStmts(renameBound(body, bound), new Map(sizes))
}

/** How many launches a kernel takes: unused ones have no threads, so that few kernels do for all numbers. */
const COUNTS = [2, 3, 4, 6, 8, 12, 16, 24, 32]
export const countFor = (n: number): number => (n < 2 ? n : COUNTS.find((c) => c >= n)!)
