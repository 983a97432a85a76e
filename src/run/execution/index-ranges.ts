/**
 * The width of the type `index`, which depends on the sizes of a run: 32 bits, or 64 bits for large sizes on targets
 * with wide indices. Larger sizes are rejected before a run.
 */

import { HIGHEST, LOWEST } from '../../analysis/integers/interval.ts'
import { type Box, type Overflow, overflowOf, WIDEST } from '../../analysis/integers/plan-ranges.ts'
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { TARGETS, targetOf } from '../../backends/targets/index.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import type { Buffer, Kernel3 } from '../../ir/statements/loops.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { Device } from '../../runtime/device.ts'

/** Ranges of sizes, and whether a plan needs 64-bit indices. */
interface KnownSizes {
  readonly box: Box
  readonly isWide: boolean
}

/** Most recent first. */
const within = new WeakMap<Kernel3, KnownSizes[]>()
const MOST_BOXES = 8

/** True if code for a device of this kind can have 64-bit indices. */
export const hasWideIndices = (device: Pick<Device, 'kind'>): boolean => TARGETS[targetOf(device)].wideIndices

/**
 * Returns whether a plan needs 64-bit indices, which `canBeWide` permits. The analysis covers sizes up to the next power of
 * two; after an overflow, the given sizes. Throws SptError `plan/overflow`.
 */
export function checkRanges(plan: Kernel3, sizes: ReadonlyMap<string, number>, canBeWide = false): boolean {
  const known = within.get(plan) ?? []
  within.set(plan, known)
  const params = new Map(
    plan.params.flatMap((p) => {
      const value = p.dtype === 'i32' || p.kind === 'size' ? sizes.get(p.name) : undefined
      return value === undefined ? [] : [[p.name, value] as const]
    }),
  )
  // The ranges of addresses computed from data are unknown.
  const isLarge = canBeWide && plan.buffers.some((b) => elementsOf(b, sizes) > HIGHEST)
  const last = known.find((x) => holds(x.box, params) && (x.isWide ? canBeWide : !isLarge))
  if (last) return last.isWide
  const around: Box = new Map([...params].map(([name, v]) => [name, [Math.min(0, -power(-v)), power(v)]]))
  const alone: Box = new Map([...params].map(([name, v]) => [name, [v, v]]))
  const narrowBox = isLarge ? undefined : [around, alone].find((box) => !overflowOf(plan, box))
  if (!narrowBox) {
    const over = overflowOf(plan, alone, canBeWide ? WIDEST : HIGHEST)
    if (over) refuse(plan, over, params, canBeWide ? WIDEST : HIGHEST)
  }
  known.unshift({ box: narrowBox ?? alone, isWide: !narrowBox })
  known.splice(MOST_BOXES)
  return !narrowBox
}

/** The number of elements of a buffer; 0 if a size is unknown. */
function elementsOf({ shape }: Buffer, sizes: ReadonlyMap<string, number>): number {
  if (shape.some((e) => [...freeVars(e)].some((v) => !sizes.has(v)))) return 0
  return shape.reduce((size, e) => size * Math.max(0, evaluate(e, sizes)), 1)
}

/** The least 2^k - 1 that is at least `v`; at least 0. */
const power = (v: number): number => (v <= 0 ? 0 : 2 ** Math.ceil(Math.log2(v + 1)) - 1)

const holds = (box: Box, sizes: ReadonlyMap<string, number>): boolean =>
  [...sizes].every(([name, v]) => {
    const range = box.get(name)
    return range !== undefined && v >= range[0] && v <= range[1]
  })

const LONGEST = 160

function refuse(
  plan: Kernel3,
  { of, expr, lo, hi, launch }: Overflow,
  sizes: ReadonlyMap<string, number>,
  most: number,
): never {
  // Index arrays, capacities and operands of instructions have 32 bits for any width.
  const limit = hi > most || lo < -most ? most : HIGHEST
  const isWide = limit > HIGHEST
  const printed = printExpr(expr)
  const text = printed.length > LONGEST ? `${printed.slice(0, LONGEST)}…` : printed
  const given = [...freeVars(expr)].flatMap((v) => (sizes.has(v) ? [`${v} = ${sizes.get(v)}`] : []))
  const verb = of.kind === 'loop' || of.kind === 'grid' ? 'is' : 'reaches'
  const reaches = `${text} ${verb} ${hi > limit ? hi : lo}${given.length > 0 ? ` (${given.join(', ')})` : ''}`
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
              : of.kind === 'operand'
                ? 'an operand of an instruction'
                : 'an expression'
  const span = expr.span ?? (of.kind === 'loop' ? of.loop.span : 'span' in of ? of.span : undefined)
  failAs('plan/overflow', {
    message: `${what} in ${launch} does not fit ${isWide ? '53 bits' : '32 bits'}: ${reaches}`,
    ...(span ? { span } : {}),
    expected: `from ${isWide ? -limit : LOWEST} to ${limit}: kernels of ${plan.name} count and address in ${isWide ? 'doubles, which are exact in this range' : '32 bits'}`,
    hint:
      of.kind !== 'loop' && of.kind !== 'grid'
        ? 'use smaller sizes, or divide before multiplying'
        : 'use smaller sizes, or fuse fewer loops: nested loops count further than a single loop',
  })
}
