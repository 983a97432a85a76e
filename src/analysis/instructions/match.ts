/**
 * Matching of loop nests with instructions. The loops have the extents of the instruction's iterators, in order, and
 * the statement is its body with buffers in place of operands, in the required layout. A copy may have zeros in place
 * of missing elements if the instruction moves a box of a matrix or fills with zeros (`zero-fill.ts`). A store of a box
 * may skip elements beyond the edges of the matrix.
 */
import { conjuncts, type Expr, type Load, load } from '../../ir/expressions/expr.ts'
import { walkExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Reduce, Store } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'
import { scalarType } from '../../ir/values/dtype.ts'
import { matches } from '../expression-pattern.ts'
import { boundOfRun } from '../integers/mixed-radix.ts'
import { elementsIn } from './operand-digits.ts'
import { type Around, bodyText, type Mismatch, no, operandProblem } from './operands.ts'
import { filled, fillProblem, storesBox } from './zero-fill.ts'

interface Match {
  readonly kind: 'match'
  readonly loops: readonly For[]
  readonly operands: ReadonlyMap<string, Load>
  /** Conditions of the copy: if one fails, zeros are copied, or nothing is stored to a box of a matrix. */
  readonly where: readonly Expr[]
}

export function matchInstr(instr: Instr, top: For, around: Around): Match | Mismatch {
  const loops: For[] = []
  let body: Body = [top]
  // Elements of a box beyond the edges of the matrix that it is stored to are skipped.
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
          hint: 'require sizes that are multiples of the tile (`require n % 16 == 0`), or cache the operand with padding',
        },
      )
    // A copy for a reduction has the loops of the reduction, so the kinds of loops are compared for reductions only.
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

/** Returns the body inside of conditions, which are added to `where`. */
function under(body: Body, where: Expr[]): Body {
  const s = body.length === 1 ? body[0] : undefined
  if (s?.kind !== 'if' || s.else.length > 0) return body
  where.push(...conjuncts(s.cond))
  return under(s.then, where)
}

const shapeOf = (instr: Instr): string =>
  `loops of ${instr.iters.map((i) => `${i.extent} (${i.name})`).join(', ')}, directly inside of each other`

/** The buffer element of each operand. */
type Bound = ReadonlyMap<string, Load>

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

/** Binds an operand to a buffer element. An operand that is bound already must have the same element. */
const bind = (operand: string, l: Load, ways: readonly Bound[]): readonly Bound[] =>
  ways.flatMap((bound) => {
    const known = bound.get(operand)
    if (!known) return [new Map([...bound, [operand, l]])]
    const equal = known.buffer === l.buffer && known.index.every((e, k) => keyOf(e) === keyOf(l.index[k]!))
    return equal ? [bound] : []
  })

const same = (pattern: Expr, actual: Expr, ways: readonly Bound[]): readonly Bound[] =>
  matches(pattern, actual, ways, (p, a, now) =>
    p.kind !== 'load'
      ? undefined
      : a.kind === 'load' && scalarType(p.dtype) === scalarType(a.dtype)
        ? bindAll(p, a, now)
        : [],
  )

/**
 * Binds an operand, and the operands whose elements are in its index: each load in the kernel's index may be such an
 * element.
 */
function bindAll(p: Load, a: Load, ways: readonly Bound[]): readonly Bound[] {
  const read: Load[] = []
  for (const e of a.index)
    walkExpr(e, (x) => {
      if (x.kind === 'load') read.push(x)
    })
  return elementsIn(p.index).reduce(
    (now, v) =>
      read.filter((x) => scalarType(x.dtype) === scalarType(v.dtype)).flatMap((x) => bind(v.buffer, x, now)),
    bind(p.buffer, a, ways),
  )
}

/** Returns the instructions that the loops of a kernel are mapped to (`tensorize`), by name. */
export function instructionsOf(kernel: Kernel2): ReadonlyMap<string, Instr> {
  const out = new Map<string, Instr>()
  for (const { mode } of loopsOf(kernel.body)) if (mode.kind === 'instr') out.set(mode.instr.name, mode.instr)
  return out
}
