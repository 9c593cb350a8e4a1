package org.apache.iceberg.rest;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.IcebergBuild;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.gzip.GzipHandler;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Iceberg's reference catalog server, assembled as RESTCatalogServer does it, but bound to loopback.
 *
 * <p>RESTCatalogServer has no option for a host and listens on every interface; it also logs the catalog's properties,
 * including the database password. The servlet, the adapter and the catalog are the library's own. The kernel picks the
 * port, which is printed with the version.
 */
public final class LoopbackCatalogServer {
  private LoopbackCatalogServer() {}

  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties = RCKUtils.environmentCatalogConfig();
    RESTCatalogServer.CatalogContext catalog =
        new RESTCatalogServer.CatalogContext(
            CatalogUtil.buildIcebergCatalog("rest_backend", properties, new Configuration()), properties);

    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    RESTCatalogServlet servlet = new RESTCatalogServlet(new RESTServerCatalogAdapter(catalog));
    context.addServlet(new ServletHolder(servlet), "/*");
    context.insertHandler(new GzipHandler());

    Server server = new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    server.setHandler(context);
    server.setStopAtShutdown(true);
    server.start();
    System.out.println("Iceberg version: " + IcebergBuild.version());
    System.out.println("Catalog listens on port: " + server.getURI().getPort());
    server.join();
  }
}
