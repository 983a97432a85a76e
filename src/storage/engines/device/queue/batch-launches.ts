/**
 * Horizontal fusion of launches: several launches of one structure become one kernel with consecutive blocks, each with
 * the columns and sizes of its launch. For small launches the launch overhead dominates.
 */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import { type Expr, lt, sub, variable } from '../../../../ir/expressions/expr.ts'
import {
  allocatedNames,
  renameBound,
  renameBuffer,
  substituteStmts,
} from '../../../../ir/statements/bindings.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import { walkStmts } from '../../../../ir/statements/tree.ts'
import { type LaunchSpec, THREADS, type Use } from '../kernels/kernel-builder.ts'

/** Name of the size that ends a launch's range of threads (or blocks) in the fused kernel. */
export const END = 'x_end'

const instanceName = (name: string, k: number): string => `${name}_of${k}`

/** Splits a name in a fused kernel into the original name and the launch number; −1: shared by all launches. */
export function parseInstanceName(name: string): { readonly name: string; readonly launch: number } {
  const match = /^(.*)_of(\d+)$/.exec(name)
  return match ? { name: match[1]!, launch: Number(match[2]) } : { name, launch: -1 }
}

/** The fusion of `count` launches with the structure of `spec`; each starts at a multiple of `block` threads. */
export function fuseLaunches(spec: LaunchSpec, count: number, block: number): LaunchSpec {
  const columns: Record<string, Use> = {}
  const sizes: Record<string, number> = {}
  for (let k = 0; k < count; k++) {
    for (const [name, use] of Object.entries(spec.columns)) columns[instanceName(name, k)] = use
    for (const name of [...Object.keys(spec.sizes ?? {}), THREADS, END]) sizes[instanceName(name, k)] = 0
  }
  return {
    key: spec.key,
    threads: block,
    ...(spec.shared ? { shared: true } : {}),
    columns,
    sizes,
    body: (e) => {
      const sharedMemory = new Map<string, Stmt>()
      const instances = Array.from({ length: count }, (_, k) => {
        const index = k === 0 ? e : sub(e, variable(instanceName(END, k - 1)))
        const body = renameInstance(spec, index, k, sharedMemory)
        return spec.shared ? body : [when(lt(index, variable(instanceName(THREADS, k))), body)]
      })
      const dispatch = instances.reduceRight<readonly Stmt[]>(
        (otherwise, body, k) => [when(lt(e, variable(instanceName(END, k))), body, otherwise)],
        [],
      )
      return [...sharedMemory.values(), ...dispatch]
    },
  }
}

/** The body of launch `k` with renamed variables. Shared memory is declared once for all launches. */
function renameInstance(
  spec: LaunchSpec,
  index: Expr,
  k: number,
  sharedMemory: Map<string, Stmt>,
): readonly Stmt[] {
  let body = spec.body(index)
  const renames = new Map<string, string>()
  const buffers = new Set(Object.keys(spec.columns))
  walkStmts(body, (s) => {
    if (s.kind === 'for') renames.set(s.var, instanceName(s.var, k))
    if (s.kind === 'let') renames.set(s.name, instanceName(s.name, k))
    if (s.kind !== 'alloc') return
    if (s.buffer.scope === 'shared') sharedMemory.set(s.buffer.name, s)
    else buffers.add(s.buffer.name)
  })
  body = body.filter((s) => !(s.kind === 'alloc' && s.buffer.scope === 'shared'))
  invariant(allocatedNames(body, 'shared').size === 0, 'memory of a block is declared first')
  for (const name of buffers) body = renameBuffer(body, name, instanceName(name, k))
  const sizes = [...Object.keys(spec.sizes ?? {}), THREADS].map(
    (n) => [n, variable(instanceName(n, k))] as const,
  )
  return substituteStmts(renameBound(body, renames), new Map(sizes))
}

/**
 * Numbers of launches for which fused kernels exist. Surplus launches have no threads, so a few kernels cover
 * all numbers.
 */
const COUNTS = [2, 3, 4, 6, 8, 12, 16, 24, 32]
export const fusedCount = (n: number): number => (n < 2 ? n : COUNTS.find((c) => c >= n)!)
