/** Stage III → a JavaScript module: one exported function for each launch, over typed arrays and numbers. */

import { type Expr, int, isOne, type ThreadAxis } from '../../../ir/expr.ts'
import { dimensionOf, levelOf } from '../../../ir/hardware-axes.ts'
import type { Launch, Plan } from '../../../ir/loops.ts'
import { hasBarrier } from '../../../ir/tree.ts'
import { argsOf, type LaunchUse } from '../../launch-uses.ts'
import type { Entry, PrintedModule } from '../../module.ts'
import { Mangler } from '../../name-mangling.ts'
import { Printer } from '../../printer.ts'
import type { Helpers } from '../../spellings.ts'
import { reserved } from './reserved.ts'
import { JS, sharedArray } from './spellings.ts'

export function jsModule(plan: Plan, uses: readonly LaunchUse[]): PrintedModule {
  const helpers: Helpers = new Map()
  const functions: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  const scalars = new Set(plan.params.filter((p) => p.kind === 'scalar').map((p) => p.name))
  for (const use of uses) {
    const { launch } = use
    const mangler = new Mangler(reserved())
    const entry = mangler.unique(launch.name)
    const printer = new Printer(
      { target: JS, mangler, helpers, buffers, param: () => undefined, scalars },
      launch,
    )
    const args = argsOf(use)
    const parameters = args.map((a) => mangler.name(a.name))
    const body = printer.body(launch.body, '  ')
    functions.push(functionText(launch, entry, parameters, body, printer))
    entries.push({ name: entry, args, block: launch.block, sharedBytes: 0 })
  }
  return { name: plan.name, text: [...helpers.values(), ...functions].join('\n\n'), entries }
}

/** Loops over indices, outermost first, and what each is called. */
const AXES: readonly ThreadAxis[] = ['block.z', 'block.y', 'block.x', 'thread.z', 'thread.y', 'thread.x']
const nameOf = (axis: ThreadAxis): string => JS.builtin(axis)

function functionText(
  launch: Launch,
  name: string,
  parameters: readonly string[],
  body: readonly string[],
  printer: Printer,
): string {
  const extent = (axis: ThreadAxis): Expr => {
    const k = dimensionOf(axis)
    return levelOf(axis) === 'block' ? launch.grid[k]! : int(launch.block[k]!)
  }
  const one = (axis: ThreadAxis): boolean => isOne(extent(axis))
  const loops = AXES.filter((a) => !one(a))
  const open = (axes: readonly ThreadAxis[], indent: string): string[] =>
    axes.map((axis, k) => {
      const a = nameOf(axis)
      return `${indent}${'  '.repeat(k)}for (let ${a} = 0; ${a} < ${printer.expr(extent(axis))}; ${a}++) {`
    })
  const close = (axes: readonly ThreadAxis[], indent: string): string[] =>
    axes.map((_, k) => `${indent}${'  '.repeat(axes.length - 1 - k)}}`)
  const shared = printer.shared.map(
    (b) => `const ${printer.ref(b.name).name} = new ${sharedArray(b.dtype)}(${printer.expr(b.shape[0]!)});`,
  )
  const used = AXES.filter(one)
    .map(nameOf)
    .filter((a) => body.some((l) => l.includes(a)))
  const constants = used.map((a) => `const ${a} = 0;`)
  const head = `export function ${name}(${parameters.join(', ')}) {`
  const pad = (lines: readonly string[], by: string): string[] => lines.map((l) => by + l)
  if (!hasBarrier(launch.body)) {
    const by = '  '.repeat(loops.length)
    return [
      head,
      ...pad(constants, '  '),
      ...pad(printer.arrays, '  '),
      ...open(loops, '  '),
      ...pad(pad(shared, '  '), by),
      ...pad(body, by),
      ...close(loops, '  '),
      '}',
    ].join('\n')
  }
  // Threads that meet at barriers take turns: each is a generator that yields where it waits.
  const blocks = loops.filter((a) => levelOf(a) === 'block')
  const threads = loops.filter((a) => levelOf(a) === 'thread')
  const by = '  '.repeat(blocks.length)
  const indices = threads.map(nameOf).join(', ')
  return [
    head,
    ...pad(constants, '  '),
    ...open(blocks, '  '),
    ...pad(
      [
        ...pad(shared, '  '),
        `  const thread = function* (${indices}) {`,
        ...pad(printer.arrays, '    '),
        ...pad(body, '  '),
        '  };',
        '  let waiting = [];',
        ...open(threads, '  '),
        `  ${'  '.repeat(threads.length)}waiting.push(thread(${indices}));`,
        ...close(threads, '  '),
        '  while (waiting.length > 0) waiting = waiting.filter((t) => !t.next().done);',
      ],
      by,
    ),
    ...close(blocks, '  '),
    '}',
  ].join('\n')
}
