/**
 * Attached axes under a format. `attached(v, j)` enters the rows of one tensor at the coordinates of another axis. A
 * format of either tensor replaces the attached axis by one for each part (`attached-rows.ts`).
 */
import { type AttachedAxis, type Axis, attachedAxis, isAttached } from '../../../ir/coordinates/axis.ts'
import type { Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { iterationsOf } from '../../../ir/coordinates/stage1-tree.ts'

/**
 * Returns the axes that leave the kernel: `leaving`, and the axes attached to axes in `leaving`, directly or through
 * other axes.
 */
export function withAttached(axes: readonly Axis[], leaving: ReadonlySet<string>): ReadonlySet<string> {
  const out = new Set(leaving)
  for (const a of axes) if (isAttached(a) && (out.has(a.base) || out.has(a.parent))) out.add(a.name)
  return out
}

/** The attached axes that a format adds. */
export class Views {
  readonly #made = new Map<string, AttachedAxis>()
  readonly #unused: (name: string) => string

  constructor(unused: (name: string) => string) {
    this.#unused = unused
  }

  of(base: string, parent: string): string {
    const key = `${base} ${parent}`
    const found = this.#made.get(key) ?? attachedAxis(this.#unused(`${base}_at_${parent}`), base, parent)
    this.#made.set(key, found)
    return found.name
  }

  /** Returns the added axes that statements of `body` iterate, and the added axes that are their parents. */
  in(body: readonly Stmt1[]): readonly AttachedAxis[] {
    const used = new Set(iterationsOf(body).flatMap((it) => it.iters.map((x) => x.axis)))
    const all = [...this.#made.values()]
    for (const a of all.toReversed()) if (used.has(a.name)) used.add(a.parent)
    return all.filter((a) => used.has(a.name))
  }
}
