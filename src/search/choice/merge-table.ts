/** Dispatch tables from searches: the rules for one kind of device, next to the rules for others that a table has. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { RuleOrigin } from '../../ast/nodes/nodes.ts'
import { parseTable } from '../../ast/parse/parse-table.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { kernelHash } from '../records/identity.ts'
import { dispatchTableText, type StoredRule } from './table-text.ts'

/** A rule as JSON. */
interface RuleJson extends Omit<StoredRule, 'calls'> {
  readonly use?: string
  readonly fastest?: readonly string[]
}

/** Rules that a search found for a kind of device, with the search. */
export interface FoundRules {
  readonly kernel: Kernel
  readonly rules: readonly StoredRule[]
  readonly device: DeviceKind
  readonly origin: RuleOrigin
}

/** @throws SptError `table/…` for a text that is no table of the kernel */
export function checkTable(text: string, name: string, kernel: string): void {
  const { table } = parseTable({ name, text })
  const of = table!.kernel
  if (of.name !== kernel)
    fail({
      code: 'table/kernel',
      message: `\`${name}\` holds a dispatch of kernel ${of.name}`,
      span: of.span,
      expected: `a dispatch of kernel ${kernel}`,
      hint: 'name another file',
    })
}

/**
 * The text of a dispatch table with the found rules. With `previous`, the text of an earlier table, they apply to their
 * kind of device only, and come first. The earlier rules follow, except rules for the same kind of device if one of the
 * found rules holds for all data.
 */
export function dispatchTable({ kernel, rules, device, origin }: FoundRules, previous?: string): string {
  const found = rules.map(({ when, calls }): StoredRule => {
    const of = when === undefined ? device : `${device} and ${grouped(when)}`
    const condition = previous === undefined ? when : of
    return { ...(condition !== undefined && { when: condition }), calls, origin: origin.name }
  })
  const isTotal = rules.some((r) => r.when === undefined)
  const isReplaced = ({ when, origin: from }: StoredRule): boolean =>
    from === origin.name ||
    (isTotal && when !== undefined && new RegExp(`^${device}(?:$| and )(?!.* or )`).test(when))
  const before = previous === undefined ? { origins: {}, rules: [] } : (JSON.parse(previous) as TableJson)
  const kept = before.rules
    .map(({ use, fastest, ...r }): StoredRule => ({ ...r, calls: use ?? fastest! }))
    .filter((r) => !isReplaced(r))
  const all = [...found, ...kept]
  const origins = [...Object.entries(before.origins).map(([name, o]) => ({ ...o, name })), origin].filter(
    (o, k, list) =>
      all.some((r) => r.origin === o.name) && list.findLastIndex((p) => p.name === o.name) === k,
  )
  return dispatchTableText({ kernel: kernel.name, kernelHash: kernelHash(kernel), origins, rules: all })
}

interface TableJson {
  readonly origins: Readonly<Record<string, Omit<RuleOrigin, 'name'>>>
  readonly rules: readonly RuleJson[]
}

const grouped = (condition: string): string => (/\bor\b/.test(condition) ? `(${condition})` : condition)
