/** Blocks that `bsr(4) where (density(4) >= 1)` selects are full, which is claimed of their dense axes. */
import { isDense, type StoredAxis } from '../../ir/coordinates/axis.ts'
import { conjuncts, type Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { FormatInstance, PartInstance } from '../../ir/formats/format.ts'
import { childrenOf, type PartTree } from '../../ir/formats/part-tree.ts'
import type { Query } from '../../ir/formats/queries.ts'

export function withFilledBlocks(
  tree: PartTree,
  parts: readonly PartInstance[],
  over: readonly StoredAxis[],
): readonly PartInstance[] {
  const out = [...parts]
  const visit = (node: PartTree): void => {
    if (node.kind === 'leaf') return
    if (node.kind === 'cases')
      for (const { where, child } of node.cases) {
        if (!where || child.kind !== 'leaf') continue
        const part = out[child.part]!
        const blocks = selectedBlocks(where, node.queries, over)
        if (blocks.length === 0) continue
        const claims = blocks.flatMap((b) => claimsOf(part.instance, b))
        out[child.part] = {
          ...part,
          instance: { ...part.instance, claims: [...part.instance.claims, ...claims] },
        }
      }
    childrenOf(node).forEach(visit)
  }
  visit(tree)
  return out
}

/** Blocks that are selected only if they store at least `minimum` coordinates. */
interface Block {
  readonly by: ReadonlySet<string>
  readonly minimum: number
}

function selectedBlocks(
  where: Expr,
  queries: readonly Query[],
  over: readonly StoredAxis[],
): readonly Block[] {
  const byName = new Map(queries.map((q) => [q.name, q]))
  const conjunctTerms = conjuncts(where)
  return conjunctTerms.flatMap((c, k) => {
    const bound = lowerBoundOf(c)
    const q = bound && byName.get(bound.query)
    if (!bound || q?.kind !== 'count') return []
    const names = new Set(q.of.flatMap((e) => (e.kind === 'var' ? [e.name] : [])))
    if (!over.every((a) => names.has(a.name))) return []
    const by = new Set(q.by.map(keyOf))
    const sameGroups = (name: string): boolean => {
      const other = byName.get(name)
      return (
        other?.kind === 'count' && other.by.length === q.by.length && other.by.every((e) => by.has(keyOf(e)))
      )
    }
    // Other conditions may select only some of a block's elements.
    const isWhole = conjunctTerms.every((d, other) => other === k || [...freeVars(d)].every(sameGroups))
    return isWhole ? [{ by, minimum: bound.minimum }] : []
  })
}

function lowerBoundOf(e: Expr): { readonly query: string; readonly minimum: number } | undefined {
  if (e.kind !== 'binary') return undefined
  const constantOf = (x: Expr): number | undefined =>
    x.kind === 'const' ? x.value : x.kind === 'cast' ? constantOf(x.x) : undefined
  const countName = (x: Expr): string | undefined =>
    x.kind === 'var' ? x.name : x.kind === 'cast' ? countName(x.x) : undefined
  if (e.op === 'le') return lowerBoundOf({ ...e, op: 'ge', a: e.b, b: e.a })
  const minimum = constantOf(e.b)
  if ((e.op !== 'ge' && e.op !== 'eq') || minimum === undefined) return undefined
  const [dividend, size] = e.a.kind === 'binary' && e.a.op === 'div' ? [e.a.a, constantOf(e.a.b)] : [e.a, 1]
  const query = countName(dividend)
  // A ratio below 1 is subject to rounding.
  if (query === undefined || size === undefined || (size !== 1 && !Number.isInteger(minimum)))
    return undefined
  return { query, minimum: minimum * size }
}

/** The axes that vary within a block are full if the block stores as many elements as they have slots. */
function claimsOf(part: FormatInstance, { by, minimum }: Block): FormatInstance['claims'] {
  const byName = new Map(part.axes.map((a) => [a.name, a]))
  if (part.lists.length > 0) return []
  const varyingAxes = part.order.filter((_, k) => !by.has(keyOf(part.map[k]!))).map((a) => byName.get(a)!)
  let slots = 1
  for (const a of varyingAxes) {
    if (!isDense(a) || a.extent.kind !== 'const') return []
    slots *= a.extent.value
  }
  if (slots > minimum) return []
  return varyingAxes.map((a) => ({ axis: a.name, claim: 'full', follows: true }))
}
