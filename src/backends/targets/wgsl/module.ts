/**
 * Prints Stage III as WGSL: one module for each launch, because a binding has one type in a module. Buffers are bindings 0 … n-1
 * of group 0 in the order of the entry's arguments. Scalars share one uniform block, the next binding.
 */

import { invariant } from '../../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { isOne } from '../../../ir/expressions/expr.ts'
import type { Plan } from '../../../ir/statements/loops.ts'
import { computeType } from '../../../ir/values/dtype.ts'
import { blockDecode, isMultiDimensional, operand } from '../../grid-folding.ts'
import { argsOf, type LaunchUse } from '../../launch-uses.ts'
import type { PrintedModule } from '../../module.ts'
import { capabilitiesOf } from '../../print/instr-calls.ts'
import { Mangler } from '../../print/name-mangling.ts'
import { Printer } from '../../print/printer.ts'
import type { Helpers } from '../../print/spellings.ts'
import { reserved } from './reserved.ts'
import type { Wgsl } from './spellings.ts'

export const wgslModules = (plan: Plan, uses: readonly LaunchUse[], target: Wgsl): PrintedModule[] =>
  uses.map((use) => wgslModule(plan, use, target))

/** Diagnostic rules of the uniformity analysis, by extension. */
const UNIFORMITY: Readonly<Record<string, string>> = {
  subgroups: 'subgroup_uniformity',
  chromium_experimental_subgroup_matrix: 'chromium.subgroup_matrix_uniformity',
}

function wgslModule(plan: Plan, use: LaunchUse, target: Wgsl): PrintedModule {
  const { launch } = use
  const helpers: Helpers = new Map()
  const mangler = new Mangler(reserved())
  const entry = mangler.unique(launch.name)
  const args = argsOf(use)
  const fields = new Map(use.scalars.map((p) => [p.name, mangler.name(`${p.name}`)]))
  const bools = new Set(use.scalars.filter((p) => p.dtype === 'bool').map((p) => p.name))
  const param = (name: string): string | undefined =>
    fields.has(name)
      ? bools.has(name)
        ? `(params.${fields.get(name)} != 0u)`
        : `params.${fields.get(name)}`
      : undefined
  const printer = new Printer(
    { target, mangler, helpers, buffers: new Map(plan.buffers.map((b) => [b.name, b])), param },
    launch,
  )
  const body = printer.body(launch.body, '  ')
  const bindings = use.buffers.map(({ buffer, access }, k) => {
    const ref = printer.ref(buffer.name)
    return `@group(0) @binding(${k}) var<storage, ${access}> ${ref.name}: ${target.elements.arrayType(ref)};`
  })
  const block =
    use.scalars.length === 0
      ? []
      : [
          `struct Params {\n${use.scalars.map((p) => `  ${fields.get(p.name)}: ${p.dtype === 'bool' ? 'u32' : target.type(computeType(p.dtype))},`).join('\n')}\n}`,
          `@group(0) @binding(${use.buffers.length}) var<uniform> params: Params;`,
        ]
  const shared = printer.shared.map((b) => {
    const ref = printer.ref(b.name)
    const length = b.shape[0]
    invariant(length?.kind === 'const', `the length of ${b.name} is not constant`)
    return `var<workgroup> ${ref.name}: ${target.elements.arrayType(ref, length.value)};`
  })
  const print = (e: Expr): string => printer.expr(e)
  const extents = launch.grid.filter((e) => !isOne(e))
  const linear = extents.length > 0
  const axes = blockDecode(launch.grid, print, body)
  const isPlane = isMultiDimensional(launch.grid)
  const product = extents.map((e) => operand(e, print)).join(' * ')
  const indent = isPlane ? '    ' : '  '
  const foldedDecode = [
    // A grid beyond the limit of one dimension is folded into two; excess blocks return.
    `${indent}let linear = i32(group.x + group.y * groups.x);`,
    `${indent}if (linear >= ${product}) {`,
    `${indent}  return;`,
    `${indent}}`,
    ...axes.map(({ axis, value }) => `${indent}${isPlane ? '' : 'let '}${axis} = ${value('linear')};`),
  ]
  const mismatches = launch.grid.map((e, d) => `i32(groups.${'xyz'[d]}) != ${operand(e, print)}`)
  const prologue = isPlane
    ? [
        ...axes.map(({ axis }) => `  var ${axis} = i32(group.${axis.slice(-1)});`),
        `  if (${mismatches.join(' || ')}) {`,
        ...foldedDecode,
        '  }',
      ]
    : linear
      ? foldedDecode
      : axes.map(({ axis, value }) => `  let ${axis} = ${value('linear')};`)
  const usesLocal = body.some((l) => l.includes('local.'))
  const inputs = [
    ...(usesLocal ? ['@builtin(local_invocation_id) local: vec3<u32>'] : []),
    ...(linear
      ? ['@builtin(workgroup_id) group: vec3<u32>', '@builtin(num_workgroups) groups: vec3<u32>']
      : []),
  ]
  const usesF16 = [...bindings, ...shared, ...helpers.values()].some((l) => /\bf16\b/.test(l))
  const capabilities = capabilitiesOf(use, 'wgsl')
  const extensions = new Set([
    ...(usesF16 ? ['f16'] : []),
    ...(body.some((l) => l.includes('subgroupShuffleXor(')) ? ['subgroups'] : []),
    // Capabilities with arguments are properties of the device, not extensions.
    ...capabilities.map((c) => c.name).filter((name) => !name.includes('(')),
  ])
  // The compiler has checked that threads execute an instruction together; the analysis of WGSL knows uniformity in blocks only.
  const rules = capabilities.flatMap((c) => UNIFORMITY[c.name] ?? [])
  const directives = [
    ...[...extensions].map((name) => `enable ${name};`),
    ...rules.map((rule) => `diagnostic(off, ${rule});`),
  ]
  const text = [
    ...(directives.length > 0 ? [directives.join('\n')] : []),
    ...block,
    bindings.join('\n'),
    ...(shared.length > 0 ? [shared.join('\n')] : []),
    ...helpers.values(),
    [
      `@compute @workgroup_size(${launch.block.join(', ')})`,
      `fn ${entry}(${inputs.join(', ')}) {`,
      ...prologue,
      ...body,
      '}',
    ].join('\n'),
  ].join('\n\n')
  return {
    name: launch.name,
    text: `${text}\n`,
    entries: [{ name: entry, args, block: launch.block, sharedBytes: 0 }],
    ...(capabilities.length > 0 ? { capabilities } : {}),
  }
}
