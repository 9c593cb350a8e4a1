"""Configuration of a broker started here: one node that is broker and controller, and its logging."""

from __future__ import annotations

from pathlib import Path

LOGGING_FILE = "log4j2.xml"
LOGGING = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders>
    <Console name="Log" target="SYSTEM_OUT"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="Log"/></Root>
  </Loggers>
</Configuration>
"""

# One node, one replica. Topics live as long as a run and are then deleted: nothing expires earlier, and their
# files are removed immediately, not after the default minute. The folder is relative to the working directory
# because a properties file cannot represent every path.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=data
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
delete.topic.enable=true
message.max.bytes=67108864
replica.fetch.max.bytes=67108864
socket.request.max.bytes=104857600
log.retention.ms=-1
log.retention.bytes=-1
log.segment.delete.delay.ms=1000
log.initial.task.delay.ms=1000
"""


def write_properties(directory: Path, port: int, controller_port: int) -> Path:
    """Write the properties and logging configuration for a broker in `directory`; return the properties file."""
    (directory / LOGGING_FILE).write_text(LOGGING)
    properties = directory / "server.properties"
    properties.write_text(PROPERTIES.format(port=port, controller_port=controller_port))
    return properties
