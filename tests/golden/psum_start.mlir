module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<32x2xf32>) -> (tensor<32x2xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{"x", "y"}, {}]>] manual_axes={"x", "y"} (%arg1: tensor<4x2xf32>) {
      %1 = "stablehlo.async_start"(%arg1) ({
      ^bb0(%arg2: tensor<4x2xf32>):
        %3 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
        ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
          %4 = stablehlo.add %arg3, %arg4 : tensor<f32>
          stablehlo.return %4 : tensor<f32>
        }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
        stablehlo.return %3 : tensor<4x2xf32>
      }) : (tensor<4x2xf32>) -> !stablehlo.future<tensor<4x2xf32>>
      %2 = "stablehlo.async_done"(%1) : (!stablehlo.future<tensor<4x2xf32>>) -> tensor<4x2xf32>
      sdy.return %2 : tensor<4x2xf32>
    } : (tensor<32x2xf32>) -> tensor<32x2xf32>
    return %0 : tensor<32x2xf32>
  }
}
