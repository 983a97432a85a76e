/** Overflow checks: rejects sizes for which a plan would exceed 32 bits, before anything runs. */

import { HIGHEST, LOWEST } from '../../analysis/integers/interval.ts'
import { type Box, type Overflow, overflowOf } from '../../analysis/integers/plan-ranges.ts'
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import type { Plan } from '../../ir/statements/loops.ts'

/** Ranges of sizes for which a plan is known to stay within 32 bits, most recent first. */
const within = new WeakMap<Plan, Box[]>()
const MOST_BOXES = 8

/**
 * Checks that a plan stays within 32 bits. It is analysed for all sizes up to the next power of two, and only if that fails for these
 * sizes alone. Throws SptError `plan/overflow`.
 */
export function checkRanges(plan: Plan, sizes: ReadonlyMap<string, number>): void {
  const known = within.get(plan) ?? []
  within.set(plan, known)
  const params = new Map(
    plan.params.flatMap((p) => {
      const value = p.dtype === 'i32' || p.kind === 'size' ? sizes.get(p.name) : undefined
      return value === undefined ? [] : [[p.name, value] as const]
    }),
  )
  if (known.some((box) => holds(box, params))) return
  const around: Box = new Map([...params].map(([name, v]) => [name, [Math.min(0, -power(-v)), power(v)]]))
  const alone: Box = new Map([...params].map(([name, v]) => [name, [v, v]]))
  if (!overflowOf(plan, around)) known.unshift(around)
  else {
    const found = overflowOf(plan, alone)
    if (found) refuse(plan, found, params)
    known.unshift(alone)
  }
  known.splice(MOST_BOXES)
}

/** The least 2^k - 1 that is at least `v`; at least 0. */
const power = (v: number): number => (v <= 0 ? 0 : 2 ** Math.ceil(Math.log2(v + 1)) - 1)

const holds = (box: Box, sizes: ReadonlyMap<string, number>): boolean =>
  sizes.size <= box.size &&
  [...sizes].every(([name, v]) => {
    const range = box.get(name)
    return range !== undefined && v >= range[0] && v <= range[1]
  })

const LONGEST = 160

function refuse(
  plan: Plan,
  { of, expr, lo, hi, launch }: Overflow,
  sizes: ReadonlyMap<string, number>,
): never {
  const printed = printExpr(expr)
  const text = printed.length > LONGEST ? `${printed.slice(0, LONGEST)}…` : printed
  const given = [...freeVars(expr)].flatMap((v) => (sizes.has(v) ? [`${v} = ${sizes.get(v)}`] : []))
  const verb = of.kind === 'loop' || of.kind === 'grid' ? 'is' : 'reaches'
  const reaches = `${text} ${verb} ${hi > HIGHEST ? hi : lo}${given.length > 0 ? ` (${given.join(', ')})` : ''}`
  const what =
    of.kind === 'loop'
      ? `the extent of loop ${of.loop.name}`
      : of.kind === 'grid'
        ? `the number of blocks on ${of.axis}`
        : of.kind === 'index'
          ? `an index of ${of.buffer}`
          : of.kind === 'room'
            ? `the room for ${of.name}`
            : of.kind === 'slots'
              ? `how many elements of ${of.name} each listed coordinate has`
              : 'a condition'
  const span = expr.span ?? (of.kind === 'loop' ? of.loop.span : 'span' in of ? of.span : undefined)
  fail({
    code: 'plan/overflow',
    message: `${what} in ${launch} does not fit 32 bits: ${reaches}`,
    ...(span ? { span } : {}),
    expected: `from ${LOWEST} to ${HIGHEST}: kernels of ${plan.name} count and address in 32 bits`,
    hint:
      of.kind !== 'loop' && of.kind !== 'grid'
        ? 'use smaller sizes, or divide before multiplying'
        : 'use smaller sizes, or fuse fewer loops: nested loops count further than a single loop',
  })
}
