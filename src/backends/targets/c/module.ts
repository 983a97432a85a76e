/** Prints Stage III as C: one function for each launch. Blocks are iterations of a parallel loop, threads of serial loops. */

import { isOne, variable } from '../../../ir/expressions/expr.ts'
import type { ThreadAxis } from '../../../ir/expressions/expr-nodes.ts'
import { dimensionOf } from '../../../ir/instructions/hardware-axes.ts'
import type { Launch, Plan } from '../../../ir/statements/loops.ts'
import { argsOf, type LaunchUse } from '../../launch-uses.ts'
import type { Entry, PrintedModule } from '../../module.ts'
import { Printer } from '../../print/printer.ts'
import { Mangler } from '../../print/reserved-words.ts'
import type { Helpers } from '../../print/spellings.ts'
import { reserved } from './reserved.ts'
import { C, MEMORY } from './spellings.ts'
import { serialThreads } from './thread-loops.ts'

export function cModule(plan: Plan, uses: readonly LaunchUse[]): PrintedModule {
  const helpers: Helpers = new Map()
  const functions: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  for (const use of uses) {
    const launch = serialThreads(use.launch)
    const mangler = new Mangler(reserved())
    const entry = mangler.unique(launch.name)
    const context = { target: C, mangler, helpers, buffers, param: () => undefined }
    const printer = new Printer(context, launch)
    const args = argsOf(use)
    const parameters = args.map((a) => {
      const name = mangler.name(a.name)
      if (a.kind === 'scalar') return `${C.type(a.dtype)} ${name}`
      const constant = a.kind === 'buffer' && a.access === 'read' ? 'const ' : ''
      return `${constant}${MEMORY[a.dtype]}* restrict ${name}`
    })
    functions.push(functionText(launch, entry, parameters, printer))
    entries.push({ name: entry, args, block: use.launch.block, sharedBytes: 0 })
  }
  const includes = '#include <math.h>\n#include <stdbool.h>'
  return { name: plan.name, text: `${[includes, ...helpers.values(), ...functions].join('\n\n')}\n`, entries }
}

function functionText(launch: Launch, name: string, parameters: readonly string[], printer: Printer): string {
  const axes = (['block.z', 'block.y', 'block.x'] as const).filter((a) => !isOne(extentOf(launch, a)))
  const indent = '  '.repeat(axes.length + 1)
  const loopHeaders = axes.map((a, k) => {
    const index = printer.expr(variable(a))
    return `${'  '.repeat(k + 1)}${C.forHeader(index, printer.expr(extentOf(launch, a)))} {`
  })
  const collapsed = axes.length > 1 ? ` collapse(${axes.length})` : ''
  return [
    `void ${name}(${parameters.join(', ')}) {`,
    ...(axes.length > 0 ? [`  #pragma omp parallel for${collapsed}`] : []),
    ...loopHeaders,
    ...printer.body(launch.body, indent),
    ...loopHeaders.map((_, k) => `${'  '.repeat(axes.length - k)}}`),
    '}',
  ].join('\n')
}

const extentOf = (launch: Launch, axis: ThreadAxis) => launch.grid[dimensionOf(axis)]!
