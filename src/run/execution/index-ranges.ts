/**
 * The width of the type `index`, which depends on the sizes of a run: 32 bits, or 64 bits for large sizes on targets
 * with wide indices. Larger sizes are rejected before a run.
 */

import { HIGHEST, LOWEST } from '../../analysis/integers/interval.ts'
import type { RangeCheck } from '../../analysis/integers/range-checks.ts'
import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { WIDEST } from '../../ir/expressions/size-expressions.ts'
import { brokenCheck, lengthOf } from '../../plan/interpret.ts'
import type { CheckedPlan } from '../../plan/launch-plan.ts'
import { checkFacts } from '../compile/device-limits.ts'
import type { Program } from '../compile/program.ts'

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
    failWith('device/released-module', `kernel ${plan.kernel} has been released`, {
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
  const isLarge = canBeWide && plan.buffers.some((b) => (lengthOf(b, sizes) ?? 0) > HIGHEST)
  const beyond = (most: number) =>
    brokenCheck(plan.checks, sizes, (x, { word }) => {
      const limit = word ? HIGHEST : most
      return x > limit || x < -limit - 1
    })
  const over = isLarge ? null : beyond(HIGHEST)
  if (!over && !isLarge) return false
  const most = canBeWide ? WIDEST : HIGHEST
  const last = canBeWide ? beyond(WIDEST) : over
  if (last) refuse(plan, last, sizes, most)
  return true
}

function refuse(
  plan: CheckedPlan,
  { check, value }: { readonly check: RangeCheck; readonly value: number },
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
    ...(check.span && { span: check.span }),
    expected: `from ${isWide ? -limit : LOWEST} to ${limit}: kernels of ${plan.kernel} count and address in ${isWide ? 'doubles, which are exact in this range' : '32 bits'}`,
    hint: check.counts
      ? 'use smaller sizes, or fuse fewer loops: nested loops count further than a single loop'
      : 'use smaller sizes, or divide before multiplying',
  })
}
