/**
 * Zero-trip loop versioning. Invariant reached: if the trip count of a pipelined loop is loaded (the length of a row), a block tests first
 * whether it is 0. An empty row runs only the statements around the loop: no barriers, no copies, and sums that are constants, which
 * compilers fold.
 * The trip count is uniform in a block, so barriers remain legal. Tiles in shared memory are shared by both versions.
 */

import { unrolledSize } from '../../analysis/loops/segmented-loops.ts'
import { MAX_UNROLLED } from '../../ir/code-size-budgets.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { int, lt } from '../../ir/expressions/expr.ts'
import { mentionsSome, readsMemory, readsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { mapSame } from '../../ir/lists.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { copyStatements } from '../../ir/statements/clone-loops.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { Alloc, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, mapBodies, rewriteStmts } from '../../ir/statements/tree.ts'

export function versionEmptyLoops(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const body = mapSame(kernel.body, (nest) => {
    const pipelined = loopsOf([nest]).filter(isPipelined)
    // The blocks of a cluster must run the same shared copies.
    if (pipelined.length === 0 || loopsOf([nest]).some((l) => l.mode.kind === 'bind' && l.mode.cluster))
      return nest
    return new Versions(nest, names).run()
  })
  return body === kernel.body ? kernel : { ...kernel, body }
}

/** A pipeline that continues into the next outer iteration has copies in flight even if its loop does not run. */
const isPipelined = ({ mode }: For): boolean => mode.kind === 'pipeline' && !mode.continued

class Versions {
  readonly #nest: Stmt
  readonly #names: Names
  /** Names that the nest writes or allocates (`#changed`), and variables of its thread loops (`#threads`). */
  readonly #changed: ReadonlySet<string>
  readonly #threads: ReadonlySet<string>

  constructor(nest: Stmt, names: Names) {
    this.#nest = nest
    this.#names = names
    this.#changed = new Set([...writesOf([nest]), ...allocatedNames([nest])])
    const threads = loopsOf([nest]).filter((l) => boundIndex(l, 'thread'))
    this.#threads = new Set(threads.map((l) => l.var))
  }

  run(): Stmt {
    return this.#inside(this.#nest)
  }

  #inside = (s: Stmt): Stmt => mapBodies(s, (b) => this.#list(b))

  /** Versions the rest of the list from its first pipelined loop on. If it has none, or is too large, versions nested lists. */
  #list(list: Body): Body {
    const at = list.findIndex((s) => this.#decisive(s) !== undefined)
    const loop = at < 0 ? undefined : this.#decisive(list[at]!)
    return (loop && this.#versioned(list, at, loop)) ?? mapSame(list, this.#inside)
  }

  /** Returns the pipelined loop in `s` that all threads of a block reach equally often and whose trip count is loaded and uniform. */
  #decisive(s: Stmt): For | undefined {
    if (s.kind !== 'for') return undefined
    if (boundIndex(s, 'thread'))
      return s.guards.length > 0 ? undefined : s.body.map((x) => this.#decisive(x)).find((l) => l)
    const { extent } = s
    const agreed = !mentionsSome(extent, this.#threads) && !readsSome(extent, this.#changed)
    return isPipelined(s) && agreed && readsMemory(extent) ? s : undefined
  }

  #versioned(list: Body, at: number, { extent }: For): Body | undefined {
    const rest = list.slice(at)
    const shared = rest.filter((s): s is Alloc => s.kind === 'alloc')
    const then = rest.filter((s) => s.kind !== 'alloc')
    const otherwise = copyStatements(without(then, keyOf(extent)), this.#names)
    const again = allocatedNames(otherwise, 'shared').size > 0 || loopsOf(otherwise).some(isPipelined)
    if (again || unrolledSize([this.#nest]) + unrolledSize(otherwise) > MAX_UNROLLED) return undefined
    return [...list.slice(0, at), ...shared, when(lt(int(0), extent), then, otherwise)]
  }
}

/** Removes the pipelined loops with this extent, and statements that become empty. */
const without = (body: Body, extent: string): Body =>
  rewriteStmts(body, {
    stmt: (s) => {
      const bodies = bodiesOf(s)
      const gone = s.kind === 'for' && isPipelined(s) && keyOf(s.extent) === extent
      return gone || (bodies.length > 0 && bodies.every((b) => b.length === 0)) ? [] : undefined
    },
  })
