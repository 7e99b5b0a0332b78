"""ROS 2 over DDS, without ROS: what `ndt-ros2-bridge` is made of. Needs the packages of the extra `dds`.

rmw: names, types and QoS as ROS 2 gives them to DDS. dds: readers and writers of serialised messages. to_ndtd, from_ndtd:
messages in, poses out. tf_buffer: odom -> base_link. link: the sockets of ndtd. bridge: the threads.
"""
