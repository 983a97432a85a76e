// The README's first command: one kernel on real data, on the CPU and on WebGPU, each checked against the reference.
import { spawnSync } from 'node:child_process'

for (const device of ['cpu', 'webgpu']) {
  const args = [
    'dist/lib/spt.js',
    'run',
    'kernels/spmm.spt',
    '--kernel',
    'spmm',
    '--bind',
    'A=data/cora.mtx',
    '--size',
    'd=64',
    '--device',
    device,
    '--verify',
  ]
  console.log(`$ spt ${args.slice(1).join(' ')}`)
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  console.log()
}
