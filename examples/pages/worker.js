// Receives the inputs of a kernel, and sends its output.
import spmm from 'sparsetile/kernels/spmm.spt?plan&kernel=spmm&target=cpu'

const fn = await spmm.build()
addEventListener('message', async ({ data }) => {
  const { C } = await fn(data)
  postMessage(C, [C.buffer])
})
postMessage('ready')
