import { rulesText, selectRules } from '../../api/kernels/rules.ts'
import { alignedColumns } from '../../ast/print/message-text.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { devices } from '../../node.ts'
import { installPackageFiles } from '../../node-programs.ts'
import type { CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { BIND, DEVICE, KERNEL, SEED, SIZE, TRUST } from '../arguments/options.ts'
import { EXIT } from '../output/failure.ts'
import { bindOptions, checkNames, readInputs, sizeOptions } from '../run/bind-options.ts'
import { withKernel } from '../scheduled-kernel.ts'

export const rules: CommandSpec = {
  name: 'rules',
  args: 'FILE',
  count: [1, 1],
  summary: 'Select formats for run-time zeros of inputs and temporaries, and print them as a schedule',
  options: optionTable`
    ${KERNEL}
    ${BIND}
    ${SIZE}
    --tile <AXIS=N>  [repeats]  The extent of the dense tile along an axis (default: 1, 8 and 32 are
      compared; 32 along axes without an option)
    ${DEVICE}
    ${SEED}
    ${TRUST}
  `,
  notes: [
    'Each micro-tile (spt show --pit) is measured on the data: covered is the share of slots in covered tiles, cost estimates\nthe work relative to the dense kernel, with the index. The output compiles if you append it to FILE.',
  ],
  examples: ['spt rules layer.spt --bind X=x.npy --tile i=16 --tile q=1 >> layer.spt'],
  async run(call) {
    installPackageFiles()
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const { files, seed } = bindOptions(call)
    const sizes = sizeOptions(call)
    const tile = call.numbers('tile', 'N')
    const text = await withKernel(call, kind, async ({ source: kernel }) => {
      checkNames(kernel.source, files.keys(), sizes.keys())
      const tensors = await readInputs(kernel.source, files, sizes)
      await using device = await devices[kind]()
      const selection = await selectRules(
        kernel,
        device,
        { tensors, params: Object.fromEntries(sizes), seed },
        tile,
      )
      const rows = selection.measured.map((r) => [
        r.tile.dimension.tensor,
        r.tile.dimension.axis,
        r.tile.extents.join(' × '),
        `covered ${r.covered.toFixed(3)}`,
        `cost ${r.cost.toFixed(3)}`,
        selection.selected.includes(r) ? 'selected' : '',
      ])
      const table = alignedColumns(rows).map((line) => `//   ${line.trimEnd()}\n`)
      if (rows.length === 0) return `// ${kernel.name} has no tensors with rules\n`
      const report = `// Rules of ${kernel.name}:\n${table.join('')}`
      return selection.selected.length === 0 ? report : `${report}\n${rulesText(kernel, selection)}`
    })
    call.io.out(text)
    return EXIT.ok
  },
}
