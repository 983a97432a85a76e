/**
 * Whether a nest of loops is what an instruction does: the loops have the extents of its iterators, in order, and
 * the statement is its body with buffers for operands, which lie as the instruction wants them. It may be a copy with
 * zeros in place of what is not there, where the instruction moves a box of a matrix or fills (`zero-fill.ts`), and leave out
 * what is beyond the edges of a matrix that a box is stored to.
 */
import { conjuncts, type Expr, type Load, load } from '../../ir/expr.ts'
import { walkExpr } from '../../ir/expr-tree.ts'
import type { Instr } from '../../ir/instr.ts'
import type { For, Reduce, Store } from '../../ir/loops.ts'
import { printExpr } from '../../ir/print-stage2.ts'
import { keyOf } from '../../ir/structural-equality.ts'
import type { Body } from '../../ir/tree.ts'
import { boundOfRun } from '../aligned-runs.ts'
import { matches } from '../expression-pattern.ts'
import { elementsIn } from './operand-digits.ts'
import { type Around, bodyText, type Mismatch, no, operandProblem } from './operands.ts'
import { filled, fillProblem, storesBox } from './zero-fill.ts'

export interface Match {
  readonly kind: 'match'
  /** One for each iterator. */
  readonly loops: readonly For[]
  readonly operands: ReadonlyMap<string, Load>
  /** Where one of these fails, zeros are copied; or nothing, to a box of a matrix. */
  readonly where: readonly Expr[]
}

export function matchInstr(instr: Instr, top: For, around: Around): Match | Mismatch {
  const loops: For[] = []
  let body: Body = [top]
  // What a box has beyond the edges of the matrix that it is stored to is left out.
  const cut = storesBox(instr)
  const beyond: Expr[] = []
  for (const it of instr.iters) {
    if (cut) body = under(body, beyond)
    const l = body.length === 1 ? body[0] : undefined
    if (l?.kind !== 'for')
      return no(
        'schedule/not-matching',
        `inside of ${top.name} there is no loop for ${it.name} of ${instr.name}, alone in its place`,
        { expected: shapeOf(instr) },
      )
    if (l.extent.kind !== 'const' || l.extent.value !== it.extent)
      return no(
        'schedule/wrong-extent',
        `${l.name} runs to ${printExpr(l.extent)}, and ${it.name} of ${instr.name} to ${it.extent}`,
        { expected: shapeOf(instr), hint: `split ${l.name} by ${it.extent}` },
      )
    if (l.guards.length > 0 && !cut)
      return no(
        'schedule/guarded',
        `not all iterations of ${l.name} run: ${l.guards.map((g) => printExpr(g)).join(' and ')}`,
        {
          expected: 'loops without conditions',
          hint: 'require that the tiles divide the sizes, or cache with padding',
        },
      )
    // A copy of what a reduction reads has its loops.
    if (instr.body.kind === 'reduce' && l.reduce !== it.reduce)
      return no(
        'schedule/not-matching',
        `${l.name} is ${l.reduce ? 'a' : 'no'} reduction loop, and ${it.name} of ${instr.name} is ${it.reduce ? 'one' : 'none'}`,
        { expected: shapeOf(instr) },
      )
    loops.push(l)
    beyond.push(...l.guards)
    body = l.body
  }
  if (cut) body = under(body, beyond)
  const only = body.length === 1 ? body[0] : undefined
  const edge = only && filled(only)
  const s = edge?.store ?? only
  const pattern = instr.body
  if ((s?.kind !== 'store' && s?.kind !== 'reduce') || s.kind !== pattern.kind)
    return no(
      'schedule/not-matching',
      `inside of ${loops.at(-1)?.name ?? top.name} stands not one statement that ${pattern.kind === 'store' ? 'assigns' : 'reduces'}`,
      { expected: shapeOf(instr) },
    )
  const where = instr.filled
    ? (edge?.where ?? []).map((g) =>
        loops.reduce((x, l, k) => boundOfRun(x, l.var, instr.iters[k]!.extent, around.facts), g),
      )
    : [...beyond, ...(edge?.where ?? [])]
  let first: Mismatch | undefined
  for (const bound of bindings(pattern, s)) {
    const wrong =
      instr.operands
        .map((o) => operandProblem(o, bound.get(o.name)!, instr, loops, around, bound))
        .find((x) => x !== undefined) ?? fillProblem(instr, loops, bound, where, around)
    if (!wrong) return { kind: 'match', loops, operands: bound, where }
    first ??= wrong
  }
  return (
    first ??
    no('schedule/not-matching', `the statement inside of ${top.name} is not what ${instr.name} computes`, {
      expected: bodyText(instr),
    })
  )
}

/** What stands under conditions alone, which are added to `where`. */
function under(body: Body, where: Expr[]): Body {
  const s = body.length === 1 ? body[0] : undefined
  if (s?.kind !== 'if' || s.else.length > 0) return body
  where.push(...conjuncts(s.cond))
  return under(s.then, where)
}

const shapeOf = (instr: Instr): string =>
  `loops of ${instr.iters.map((i) => `${i.extent} (${i.name})`).join(', ')}, directly inside of each other`

/** What operands stand for. */
type Bound = ReadonlyMap<string, Load>

/** The ways in which a statement is the pattern. */
function bindings(pattern: Store | Reduce, s: Store | Reduce): readonly Bound[] {
  const none: readonly Bound[] = [new Map()]
  if (pattern.kind === 'store' && s.kind === 'store') {
    const target = load(s.buffer, s.index, pattern.value.dtype)
    return same(pattern.value, s.value, bind(pattern.buffer, target, none))
  }
  if (pattern.kind !== 'reduce' || s.kind !== 'reduce' || s.targets.length !== 1) return []
  if (s.reducer.name !== pattern.reducer.name || s.atomic !== pattern.atomic) return []
  return same(pattern.values[0]!, s.values[0]!, bind(pattern.targets[0]!.buffer, s.targets[0]!, none))
}

/** One operand is one element everywhere. */
const bind = (operand: string, l: Load, ways: readonly Bound[]): readonly Bound[] =>
  ways.flatMap((bound) => {
    const known = bound.get(operand)
    if (!known) return [new Map([...bound, [operand, l]])]
    const equal = known.buffer === l.buffer && known.index.every((e, k) => keyOf(e) === keyOf(l.index[k]!))
    return equal ? [bound] : []
  })

/** The ways, among those given, in which the expression is the pattern. */
const same = (pattern: Expr, actual: Expr, ways: readonly Bound[]): readonly Bound[] =>
  matches(pattern, actual, ways, (p, a, now) =>
    p.kind !== 'load' ? undefined : a.kind === 'load' && p.dtype === a.dtype ? bindAll(p, a, now) : [],
  )

/** An operand, and those whose elements are in its index: each of what the kernel's index reads may be one. */
function bindAll(p: Load, a: Load, ways: readonly Bound[]): readonly Bound[] {
  const read: Load[] = []
  for (const e of a.index)
    walkExpr(e, (x) => {
      if (x.kind === 'load') read.push(x)
    })
  return elementsIn(p.index).reduce(
    (now, v) => read.filter((x) => x.dtype === v.dtype).flatMap((x) => bind(v.buffer, x, now)),
    bind(p.buffer, a, ways),
  )
}
