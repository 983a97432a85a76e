/**
 * The width of the type `index`, which depends on the sizes of a run: 32 bits, or 64 bits for large sizes on targets
 * with wide indices. Larger sizes are rejected before a run.
 */

import { HIGHEST, LOWEST } from '../../analysis/integers/interval.ts'
import { type RangeCheck, WIDEST } from '../../analysis/integers/range-checks.ts'
import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { evaluateSize } from '../../ir/expressions/size-expressions.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { CheckedPlan, DeviceArray } from '../../plan/launch-plan.ts'
import type { Program } from '../compile/compiled-program.ts'
import { checkFacts } from '../compile/device-limits.ts'

/** Checks sizes, and returns the program with indices of sufficient width. Throws SptError `plan/…`, `run/requirement`,
 * `device/released-module`. */
export async function fitting(program: Program, params: ReadonlyMap<string, number>): Promise<Program> {
  checkLive(program)
  checkFacts(program.plan, params)
  const { wide: makeWide } = program
  if (!checkRanges(program.plan, params, !program.instead && makeWide !== undefined)) return program
  const wide = await makeWide!()
  // The caller may have released the kernel during the compilation.
  checkLive(wide)
  return wide
}

function checkLive({ live, plan }: Program): void {
  if (!live)
    failWith('device/released-module', `kernel ${plan.name} has been released`, {
      hint: 'build the kernel again: kernel.build(device)',
    })
}

/** Returns whether a plan needs 64-bit indices for these sizes, which `canBeWide` permits. Throws SptError `plan/overflow`. */
export function checkRanges(
  plan: CheckedPlan,
  sizes: ReadonlyMap<string, number>,
  canBeWide = false,
): boolean {
  // The ranges of addresses computed from data are unknown.
  const isLarge = canBeWide && plan.buffers.some((b) => elementsOf(b, sizes) > HIGHEST)
  const over = isLarge ? null : overflowOf(plan.checks, sizes, HIGHEST)
  if (!over && !isLarge) return false
  const most = canBeWide ? WIDEST : HIGHEST
  const last = canBeWide ? overflowOf(plan.checks, sizes, WIDEST) : over
  if (last) refuse(plan, last, sizes, most)
  return true
}

/** The number of elements of a buffer; 0 if a size is unknown. */
function elementsOf({ shape }: DeviceArray, sizes: ReadonlyMap<string, number>): number {
  if (shape.some((e) => [...freeVars(e)].some((v) => !sizes.has(v)))) return 0
  return shape.reduce((size, e) => size * Math.max(0, evaluate(e, sizes)), 1)
}

interface Overflow {
  readonly check: RangeCheck
  readonly value: number
}

/** Returns the first check that fails for a greatest index. A check of an unknown size holds. */
function overflowOf(
  checks: readonly RangeCheck[],
  sizes: ReadonlyMap<string, number>,
  most: number,
): Overflow | undefined {
  const at = (e: RangeCheck['most']): number => (e === undefined ? 0 : (evaluateSize(e, sizes) ?? 0))
  for (const check of checks) {
    const limit = check.word ? HIGHEST : most
    const [lo, hi] = [at(check.least), at(check.most)]
    const value = hi > limit ? hi : lo < -limit - (limit === HIGHEST ? 1 : 0) ? lo : undefined
    if (value !== undefined && (check.when ?? []).every((e) => (evaluateSize(e, sizes) ?? 1) > 0))
      return { check, value }
  }
  return undefined
}

function refuse(
  plan: CheckedPlan,
  { check, value }: Overflow,
  sizes: ReadonlyMap<string, number>,
  most: number,
): never {
  // Index arrays, capacities and operands of instructions have 32 bits for any width.
  const limit = check.word ? HIGHEST : most
  const isWide = limit > HIGHEST
  const given = check.names.flatMap((v) => (sizes.has(v) ? [`${v} = ${sizes.get(v)}`] : []))
  const reaches = `${check.text} ${check.counts ? 'is' : 'reaches'} ${value}${given.length > 0 ? ` (${given.join(', ')})` : ''}`
  failAs('plan/overflow', {
    message: `${check.what} in ${check.launch} does not fit ${isWide ? '53 bits' : '32 bits'}: ${reaches}`,
    ...(check.span ? { span: check.span } : {}),
    expected: `from ${isWide ? -limit : LOWEST} to ${limit}: kernels of ${plan.name} count and address in ${isWide ? 'doubles, which are exact in this range' : '32 bits'}`,
    hint: check.counts
      ? 'use smaller sizes, or fuse fewer loops: nested loops count further than a single loop'
      : 'use smaller sizes, or divide before multiplying',
  })
}
