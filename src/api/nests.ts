/** The loops of a kernel as data: what a program that schedules any format looks at. */
import { type LoopRole, rolesIn } from '../analysis/loop-roles.ts'
import { writesOf } from '../ir/accesses.ts'
import { freeVars } from '../ir/expr-tree.ts'
import type { For, Kernel2 } from '../ir/loops.ts'
import { printExpr, printMode } from '../ir/print-stage2.ts'
import { walkStmts } from '../ir/tree.ts'
import { loopNames } from '../schedule/loop-names.ts'
import type { LoopRef } from '../schedule/loop-ref.ts'

/** A nest of loops at the top of a kernel: a separate launch, unless it is merged. */
export interface Nest {
  /** The iteration, or the step that made it. */
  readonly name: string
  /** Buffers that it writes, its own copies left out. */
  readonly writes: readonly string[]
  /** Outer before inner. */
  readonly loops: readonly NestLoop[]
}

export interface NestLoop {
  /** As steps take it: with its nest before it where another loop has the name. */
  readonly name: string
  /** Good through later steps that rename or nest it. */
  readonly handle: LoopRef
  readonly role: LoopRole
  /** How many iterations, as text over sizes and loops around it. */
  readonly extent: string
  /** The same where it is a number. */
  readonly constant: number | null
  /** How it runs: `serial`, a hardware axis (`block.x`), `unroll(4)`, `vectorize`, … */
  readonly kind: string
  /** Names of the loops around it, outermost first. */
  readonly enclosingLoops: readonly string[]
  /** Names of those that its extent or conditions depend on: it stays within them. */
  readonly dependsOn: readonly string[]
}

/** All nests, in the order in which they run. */
export function nestsOf({ body, buffers }: Kernel2, handle: (loop: For) => LoopRef): readonly Nest[] {
  const names = loopNames(body)
  const global = new Set(buffers.map((b) => b.name))
  return Object.freeze(
    body.flatMap((s): Nest[] => {
      if (s.kind !== 'for') return []
      const writes = Object.freeze([...writesOf([s])].filter((b) => global.has(b)))
      return [Object.freeze({ name: s.nest, writes, loops: loopsIn(s, names, handle) })]
    }),
  )
}

function loopsIn(
  top: For,
  names: ReadonlyMap<string, string>,
  handle: (loop: For) => LoopRef,
): readonly NestLoop[] {
  const roles = rolesIn(top)
  const out: NestLoop[] = []
  walkStmts([top], (l, path) => {
    if (l.kind !== 'for') return
    const needed = new Set([l.extent, ...l.guards].flatMap((e) => [...freeVars(e)]))
    const called = (of: readonly For[]) => Object.freeze(of.map((p) => names.get(p.var)!))
    out.push(
      Object.freeze({
        name: names.get(l.var)!,
        handle: handle(l),
        role: roles.get(l.var)!,
        extent: printExpr(l.extent),
        constant: l.extent.kind === 'const' ? l.extent.value : null,
        kind: printMode(l.mode).trim().slice(1) || 'serial',
        enclosingLoops: called(path),
        dependsOn: called(path.filter((p) => needed.has(p.var))),
      }),
    )
  })
  return Object.freeze(out)
}
